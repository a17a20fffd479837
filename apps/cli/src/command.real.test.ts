import { eventually, startProcess, temporaryDirectory, type RunningProcess } from '@bulwark/testing';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { policyYaml } from './testing/samples.js';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const bulwark = `${repository}bulwark`;

describe('the built command against a real server', () => {
  const directory = temporaryDirectory('command');
  let server: RunningProcess;
  let http: string;

  const startServer = async (address: string) => {
    const args = [
      'server',
      '--store',
      `file:${directory.path}/store`,
      '--http',
      address,
      '--grpc',
      '127.0.0.1:0',
    ];
    server = await startProcess({ command: bulwark, args });
    const line = await server.waitForLine(/"msg":"listening"/, { withinMs: 20_000 });
    http = (JSON.parse(line) as { http: string }).http;
  };
  const run = (args: readonly string[], input = '') =>
    spawnSync(bulwark, args, {
      encoding: 'utf8',
      input,
      env: { ...process.env, BULWARK_SERVER: `http://${http}` },
    });
  const start = (args: readonly string[]) =>
    startProcess({ command: bulwark, args, env: { BULWARK_SERVER: `http://${http}` } });
  const total = (name: string) => {
    const { stdout } = run(['get', 'policy', name, '-n', 'shop', '-o', 'json']);
    const object = JSON.parse(stdout) as {
      metadata: { generation: number };
      spec: { timeout: { total: string }; mode: string };
    };
    return object;
  };

  beforeAll(() => startServer('127.0.0.1:0'));

  afterAll(async () => {
    await server.stop();
    directory.remove();
  });

  it('applies, shows, compares, and takes away a policy', () => {
    const text = policyYaml(
      'pay',
      '  timeout: { total: 2s }\n  circuitBreaker: { trip: { consecutiveFailures: 10 } }',
    );
    expect(run(['apply', '-f', '-'], text)).toMatchObject({
      status: 0,
      stdout: 'resiliencepolicy.bulwark.dev/pay created\n',
    });
    expect(run(['apply', '-f', '-'], text).stdout).toBe('resiliencepolicy.bulwark.dev/pay unchanged\n');
    const table = run(['get', 'policies', '-n', 'shop']).stdout.split('\n');
    expect(table[0]).toBe('NAME   TARGET   TIMEOUT   RETRY   BREAKER          BULKHEAD   GEN   SYNCED   AGE');
    expect(table[1]).toMatch(/^pay {4}pay {6}2s {8}- {7}10 consecutive {3}- {12}1 {3}0\/0 {6}\d+s$/);
    expect(run(['diff', '-f', '-'], text)).toMatchObject({ status: 0, stdout: '' });
    const changed = text.replace('2s', '3s');
    expect(run(['diff', '-f', '-'], changed)).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('+    total: 3s') as string,
    });
    expect(run(['apply', '-f', '-'], changed).stdout).toBe('resiliencepolicy.bulwark.dev/pay configured\n');
    expect(total('pay')).toMatchObject({ metadata: { generation: 2 }, spec: { timeout: { total: '3s' } } });
    const without = policyYaml('pay', '  timeout: { total: 3s }');
    run(['apply', '-f', '-'], without);
    expect(Object.keys(total('pay').spec).sort()).toEqual(['target', 'timeout']);
    expect(run(['describe', 'policy', 'pay', '-n', 'shop']).stdout).toContain('Generation:   3\n');
    expect(run(['delete', 'policy', 'pay', '-n', 'shop']).stdout).toBe(
      'resiliencepolicy.bulwark.dev "pay" deleted\n',
    );
    expect(run(['get', 'policy', 'pay', '-n', 'shop'])).toMatchObject({
      status: 1,
      stdout: '',
      stderr: 'Error from server (NotFound): resiliencepolicies.bulwark.dev "pay" not found\n',
    });
  });

  it('two that apply at once end with one or the other, whole, a generation for each change', async () => {
    const variants = [
      '  timeout: { total: 1s }\n  mode: Enforce',
      '  timeout: { total: 2s }\n  mode: Shadow',
    ];
    run(['apply', '-f', '-'], policyYaml('race', variants[0]));
    const apply = async (variant: string) => {
      let configured = 0;
      for (let i = 0; i < 10; i += 1) {
        const process = await start(['apply', '-f', '-']);
        process.write(policyYaml('race', variant));
        process.endInput();
        const { code } = await process.exited;
        expect([code, process.stderr()]).toEqual([0, '']);
        if (process.stdout().includes('configured')) configured += 1;
      }
      return configured;
    };
    const configured = await Promise.all(variants.map(apply));
    const { metadata, spec } = total('race');
    expect([`1s Enforce`, `2s Shadow`]).toContain(`${spec.timeout.total} ${spec.mode}`);
    expect(metadata.generation).toBe(1 + configured.reduce((a, b) => a + b));
  });

  it('a watch shows changes as they come, outlives a killed server, and ends on Ctrl-C with 130', async () => {
    run(['apply', '-f', '-'], policyYaml('seen'));
    const watch = await start(['get', 'policies', '-n', 'shop', '-w', '--output-watch-events']);
    await watch.waitForLine(/^ADDED +seen/);
    run(['apply', '-f', '-'], policyYaml('seen', '  timeout: { total: 7s }'));
    await watch.waitForLine(/^MODIFIED +seen +seen +7s/);
    await server.kill();
    await watch.waitForLine(/Trying again/);
    await startServer(http);
    await watch.waitForLine('Connected again.', { withinMs: 10_000 });
    run(['delete', 'policy', 'seen', '-n', 'shop']);
    await watch.waitForLine(/^DELETED +seen/);
    watch.signal('SIGINT');
    expect(await watch.exited).toEqual({ code: 130, signal: null });
  });

  it('a reader that goes away ends a watch quietly, and is no error anywhere', async () => {
    const shell = (script: string) =>
      startProcess({
        command: 'sh',
        args: ['-c', script],
        env: { B: bulwark, BULWARK_SERVER: `http://${http}` },
      });
    run(['apply', '-f', '-'], policyYaml('quiet'));
    const watching = await shell('{ "$B" get policies -A -w; echo "code $?" >&2; } | head -n 1');
    await watching.waitForLine(/^NAMESPACE/);
    run(['apply', '-f', '-'], policyYaml('quiet', '  timeout: { total: 8s }'));
    await eventually(() => watching.stderr() !== '', { withinMs: 5_000 });
    await watching.exited;
    expect(watching.stderr()).toBe('code 0\n');
    const listing = await shell('"$B" get policies -A -o json | true');
    await listing.exited;
    expect(listing.stderr()).toBe('');
  });
});

describe('the script ./bulwark', () => {
  it('runs from anywhere and through symbolic links', () => {
    using directory = temporaryDirectory('links');
    symlinkSync(bulwark, `${directory.path}/absolute`);
    symlinkSync('absolute', `${directory.path}/relative`);
    const answer = spawnSync('./relative', ['version'], { cwd: directory.path, encoding: 'utf8' });
    expect(answer).toMatchObject({ status: 0, stdout: expect.stringMatching(/^Bulwark /) as string });
  });

  it('says what to run where nothing is built yet', () => {
    using directory = temporaryDirectory('not built');
    cpSync(bulwark, `${directory.path}/bulwark`);
    expect(spawnSync(`${directory.path}/bulwark`, ['version'], { encoding: 'utf8' })).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('run npm start or npm run build first') as string,
    });
  });

  it('refuses a Node.js that is too old, in words', () => {
    using directory = temporaryDirectory('old');
    mkdirSync(`${directory.path}/apps/cli/dist`, { recursive: true });
    mkdirSync(`${directory.path}/node_modules`);
    mkdirSync(`${directory.path}/path`);
    writeFileSync(`${directory.path}/apps/cli/dist/main.js`, '');
    cpSync(bulwark, `${directory.path}/bulwark`);
    const script = '#!/bin/sh\nif [ "$1" = --version ]; then echo v20.1.0; else exit 1; fi\n';
    writeFileSync(`${directory.path}/path/node`, script, { mode: 0o755 });
    const env = { PATH: `${directory.path}/path:/usr/bin:/bin` };
    expect(spawnSync(`${directory.path}/bulwark`, ['version'], { env, encoding: 'utf8' })).toMatchObject({
      status: 1,
      stderr: 'bulwark: Node.js v20.1.0 is too old: 22.15 or newer is needed\n',
    });
  });
});
