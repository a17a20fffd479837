import { eventually } from '@bulwark/testing';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const ANY_PORTS = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--demo-port', '0'];
/** Among the variables of every process of one run, and of no other. */
const MARK = 'BULWARK_TEST_RUN';

const cleanups: (() => void)[] = [];
afterEach(() => cleanups.splice(0).forEach((cleanup) => cleanup()));

/** Processes of this run that live, this test's own child among them. */
function living(run: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const zombie = / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
        return !zombie && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`${MARK}=${run}\0`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** As a shell starts it in the background: a process group of its own and no terminal. */
function start(args: readonly string[], until: RegExp, env: Record<string, string> = {}) {
  const run = `${process.pid}-${Math.random()}`;
  const child = spawn(process.execPath, args, {
    cwd: repository,
    env: { ...process.env, ...env, [MARK]: run },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  cleanups.push(() => {
    for (const pid of living(run)) spawnSync('kill', ['-KILL', String(pid)]);
  });
  const ready = () => eventually(() => until.test(output), { withinMs: 45_000, what: until.source });
  return { pid: child.pid ?? 0, ended, ready, output: () => output, living: () => living(run) };
}

function startDemo() {
  const scratch = mkdtempSync(join(tmpdir(), 'bulwark-demo-'));
  cleanups.push(() => rmSync(scratch, { recursive: true, force: true }));
  const store = ['--store', `file:${join(scratch, 'store')}`];
  return start([`${repository}scripts/start.mjs`, ...ANY_PORTS, ...store], /Ctrl-C stops everything/);
}

const nothingIsLeft = (demo: { living: () => number[] }) =>
  eventually(() => demo.living().length === 0, { withinMs: 15_000, what: 'the end of every process' });

/** Whatever the machine does meanwhile; the parts have 12 s themselves. */
const within = (ended: Promise<number | null>) =>
  Promise.race([ended, sleep(20_000, 'it has not ended' as const, { ref: false })]);

/** What finds them is Linux's. */
describe.runIf(process.platform === 'linux')('the demo', () => {
  it.each([
    ['a signal to its own process', (pid: number) => process.kill(pid, 'SIGTERM')],
    [
      'a Ctrl-C to the whole group that is passed on as well',
      (pid: number) => {
        process.kill(-pid, 'SIGINT');
        process.kill(pid, 'SIGINT');
      },
    ],
  ])(
    'ends all it started, in order, at %s',
    async (_what, send) => {
      const demo = startDemo();
      await demo.ready();
      expect(demo.living().length).toBeGreaterThan(5);
      send(demo.pid);
      expect(await within(demo.ended)).toBe(0);
      expect(demo.output()).toContain('Stopping …');
      await nothingIsLeft(demo);
    },
    120_000,
  );

  it('ends all it started at once when it is asked a second time while its parts hang', async () => {
    const demo = startDemo();
    await demo.ready();
    const own = demo.living().filter((pid) => pid !== demo.pid);
    const named = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    for (const pid of own.filter((pid) => !named(pid).includes('demo/dist/main.js'))) {
      process.kill(pid, 'SIGSTOP');
    }
    process.kill(-demo.pid, 'SIGINT');
    await eventually(() => demo.output().includes('Stopping …'));
    await sleep(700);
    process.kill(-demo.pid, 'SIGINT');
    expect(await within(demo.ended)).toBe(130);
    await nothingIsLeft(demo);
  }, 120_000);

  it('ends all it started when what started it was killed', async () => {
    const demo = startDemo();
    await demo.ready();
    process.kill(demo.pid, 'SIGKILL');
    await nothingIsLeft(demo);
  }, 120_000);
});

describe.runIf(process.platform === 'linux')('a bench', () => {
  const script = [`${repository}scripts/run-built.mjs`, 'test/bench/dist/main.js', 'degrade'];
  const underWay = /degrade: 7 rounds/;

  it('ends with all it started at a signal to its first process', async () => {
    const bench = start(script, underWay);
    await bench.ready();
    await eventually(() => bench.living().length >= 3, { withinMs: 20_000 });
    process.kill(bench.pid, 'SIGTERM');
    expect(await within(bench.ended)).toBe(130);
    await nothingIsLeft(bench);
  }, 120_000);

  it('ends with all it started when npm ends the shell between them', async () => {
    const shell = `${process.execPath} ${script.join(' ')}; exit $?`;
    const child = ['-e', spawnsShell(shell)];
    const bench = start(child, underWay, { npm_lifecycle_event: 'bench' });
    await bench.ready();
    await eventually(() => bench.living().length >= 5, { withinMs: 20_000 });
    process.kill(bench.pid, 'SIGTERM');
    await nothingIsLeft(bench);
  }, 120_000);
});

/** A program that does as npm does: its SIGTERM goes to the shell alone. */
function spawnsShell(command: string): string {
  return `const shell = require('node:child_process').spawn('sh', ['-c', ${JSON.stringify(command)}], { stdio: 'inherit' });
process.on('SIGTERM', () => shell.kill('SIGTERM'));
shell.on('exit', () => process.exit());`;
}
