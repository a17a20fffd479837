import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, serverBinary, startProcess, temporaryDirectory } from '@bulwark/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openFileStore } from './file-store.js';

/** Writes until killed. */
const endless = 1_000_000;
const built = new URL('../../dist/index.js', import.meta.url);

/**
 * Writes /t/ROUND-0 and so on with some concurrency, and says "ack KEY REVISION" in one system call for each, once its
 * commit is acknowledged.
 */
const writer = `
  import { writeSync } from 'node:fs';
  import { openFileStore } from ${JSON.stringify(built.href)};
  const [directory, round, count, concurrency] = process.argv.slice(1);
  const store = await openFileStore({ directory });
  writeSync(1, 'ready\\n');
  let next = 0;
  async function work() {
    while (next < Number(count)) {
      const key = '/t/' + round + '-' + next++;
      const result = await store.commit({ conditions: [], writes: [{ kind: 'put', key, value: key }] });
      writeSync(1, 'ack ' + key + ' ' + result.revision + '\\n');
    }
  }
  await Promise.all(Array.from({ length: Number(concurrency) }, work));
`;

function argumentsOf(directory: string, round: number, count: number, concurrency: number): string[] {
  return ['--input-type=module', '-e', writer, directory, String(round), String(count), String(concurrency)];
}

function acknowledged(output: string): { key: string; revision: number }[] {
  return [...output.matchAll(/^ack (\S+) (\d+)$/gm)].map(([, key = '', revision]) => ({
    key,
    revision: Number(revision),
  }));
}

describe('the embedded store', () => {
  let directory: ReturnType<typeof temporaryDirectory>;
  beforeEach(() => {
    if (!existsSync(built)) throw new Error('This test runs the built library: tsc -b libs/store');
    directory = temporaryDirectory('durability');
  });
  afterEach(() => directory.remove());

  test('keeps every acknowledged write through SIGKILL at any instant', async () => {
    const everything = new Map<string, number>();
    let revision = 0;
    for (let round = 0; round < 24; round += 1) {
      const concurrency = round % 2 === 0 ? 1 : 8;
      const child = await startProcess({
        command: process.execPath,
        args: argumentsOf(directory.path, round, endless, concurrency),
        readyLine: 'ready',
      });
      const killAt = performance.now() + Math.random() * 50;
      await eventually(() => performance.now() >= killAt, { everyMs: 1 });
      await child.kill();
      const acks = acknowledged(child.stdout());
      for (const ack of acks) everything.set(ack.key, ack.revision);

      const store = await openFileStore({ directory: directory.path });
      const { entries, revision: now } = await store.list('/t/');
      await store.close();
      const found = new Map(entries.map((entry) => [entry.key, entry.modRevision]));
      const lost = [...everything].filter(([key, at]) => found.get(key) !== at);
      expect(lost).toEqual([]);
      expect(now).toBeGreaterThanOrEqual(Math.max(revision, ...acks.map((ack) => ack.revision)));
      revision = now;
    }
    console.log(`24 kills within the writes; ${everything.size} acknowledged writes, none lost`);
    expect(everything.size).toBeGreaterThan(200);
  });

  test('syncs the log before each acknowledgement, as the system calls show', async (context) => {
    const strace = await serverBinary('strace').catch((error: Error) => error);
    if (strace instanceof Error) {
      console.log(`skipped: ${strace.message}`);
      return context.skip(strace.message);
    }
    const trace = join(directory.path, 'trace.txt');
    const child = await startProcess({
      command: strace,
      args: [
        ...['-f', '-y', '-o', trace, '-e', 'trace=fdatasync,fsync,write,pwrite64', process.execPath],
        ...argumentsOf(join(directory.path, 'store'), 0, 40, 1),
      ],
    });
    const { code } = await child.exited;
    if (code !== 0 && child.output().includes('ptrace')) {
      console.log(`skipped: strace may not trace here: ${child.output().trim()}`);
      return context.skip('strace may not trace here');
    }
    expect(acknowledged(child.stdout())).toHaveLength(40);
    expect(syncedBeforeEachAck(readFileSync(trace, 'utf8'))).toEqual(
      Array.from({ length: 40 }, () => 'synced'),
    );
  });
});

/** Says for each acknowledgement whether the log was written since the last one, and synced after that. */
function syncedBeforeEachAck(trace: string): string[] {
  const verdicts: string[] = [];
  let log: 'untouched' | 'written, not synced' | 'synced' = 'untouched';
  for (const line of trace.split('\n')) {
    if (/ pwrite64\(\d+<[^>]*bulwark\.db-wal>/.test(line)) log = 'written, not synced';
    else if (/ f(data)?sync\(\d+<[^>]*bulwark\.db-wal>/.test(line) && log !== 'untouched') log = 'synced';
    else if (/ write\(1<[^>]*>, "ack /.test(line)) {
      verdicts.push(log);
      log = 'untouched';
    }
  }
  return verdicts;
}
