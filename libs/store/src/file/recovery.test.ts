import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@bulwark/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { brief, codeOf, put, record, write } from '../conformance/fixture.conformance.js';
import type { Store } from '../store.js';
import { openFileStore, type FileStoreOptions } from './file-store.js';

let scratch: ReturnType<typeof temporaryDirectory>;
const open: Store[] = [];

beforeEach(() => {
  scratch = temporaryDirectory('recovery');
});
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  scratch.remove();
});

async function opened(name: string, options: Partial<FileStoreOptions> = {}): Promise<Store> {
  const store = await openFileStore({ directory: join(scratch.path, name), ...options });
  open.push(store);
  return store;
}

/** What a crash at this instant would leave: the files as they are, without the store's own closing. */
function crash(from: string, to: string): void {
  cpSync(join(scratch.path, from), join(scratch.path, to), { recursive: true });
}

describe('the embedded store after a restart', () => {
  test('counts revisions on and gives watches the history from before', async () => {
    const first = await opened('a');
    const one = await write(first, put('/t/a', '1'));
    const two = await write(first, put('/t/a', '2'));
    crash('a', 'b');
    const second = await opened('b');
    expect(await second.revision()).toBe(two);
    const watch = record(second, '/t/', one);
    const three = await write(second, put('/t/b', '3'));
    expect(three).toBe(two + 1);
    await watch.until(three);
    expect(watch.batches.map(brief)).toEqual([`${two} +/t/a=2`, `${three} +/t/b=3`]);
    watch.stop();
  });

  test('has dropped the keys under leases of the process that died, visibly for watches', async () => {
    const first = await opened('a');
    const lease = await first.lease(60_000);
    await write(first, put('/t/stays'));
    const last = await write(first, { kind: 'put', key: '/t/claim', value: 'me', lease });
    crash('a', 'b');
    const second = await opened('b');
    expect((await second.list('/t/')).entries.map(({ key }) => key)).toEqual(['/t/stays']);
    const watch = record(second, '/t/', last);
    await watch.until(last + 1);
    expect(watch.batches.map(brief)).toEqual([`${last + 1} -/t/claim`]);
    watch.stop();
  });

  test('a clean close has dropped them already', async () => {
    const first = await opened('a');
    await write(first, { kind: 'put', key: '/t/claim', value: 'me', lease: await first.lease(60_000) });
    await first.close();
    const second = await opened('a');
    expect((await second.list('/t/')).entries).toEqual([]);
  });

  test('answers the commits that were under way when it was closed, and keeps them', async () => {
    const first = await opened('a');
    const commits = Array.from({ length: 300 }, (_, at) => write(first, put(`/t/${at}`)));
    await first.close();
    expect(new Set(await Promise.all(commits)).size).toBe(300);
    const second = await opened('a');
    expect((await second.list('/t/')).entries).toHaveLength(300);
  });
});

describe('the history of the embedded store', () => {
  test('is bounded by its number of revisions, also after a restart', async () => {
    const store = await opened('a', { historyLimit: 100 });
    let last = 0;
    for (let turn = 0; turn < 1000; turn += 1) last = await write(store, put('/t/a', String(turn)));
    const readable = async (by: Store, count: number) => {
      const { signal } = new AbortController();
      return codeOf(async () => {
        for await (const batch of by.watch('/t/', { afterRevision: last - count, signal })) {
          if (batch.revision === last) break;
        }
      });
    };
    expect(await readable(store, 100)).toBe('no error');
    expect(await readable(store, 111)).toBe('compacted');
    crash('a', 'b');
    const again = await opened('b', { historyLimit: 100 });
    expect(await readable(again, 100)).toBe('no error');
    expect(await readable(again, 111)).toBe('compacted');
  });

  test('is bounded by its bytes, but never without the newest revision', async () => {
    const store = await opened('a', { historyBytesLimit: 50_000 });
    const revisions: number[] = [];
    // Each is kept with its predecessor: about 20 kB.
    for (let turn = 0; turn < 10; turn += 1)
      revisions.push(await write(store, put('/t/a', 'x'.repeat(10_000))));
    const startsAfter = async (revision = 0) => {
      const watch = record(store, '/t/', revision);
      const ended = await Promise.race([watch.ended, watch.until(revisions.at(-1) ?? 0)]);
      watch.stop();
      return ended ?? 'all seen';
    };
    expect(await startsAfter(revisions[7])).toBe('all seen');
    expect(await startsAfter(revisions[5])).toBe('compacted');
    revisions.push(await write(store, put('/t/a', 'x'.repeat(100_000))));
    expect(await startsAfter(revisions[9])).toBe('all seen');
    expect(await startsAfter(revisions[8])).toBe('compacted');
  });
});

describe('commits in one group', () => {
  test('each see what those before them did, and have a revision of their own', async () => {
    const store = await opened('a');
    const attempt = (value: string) =>
      store.commit({ conditions: [{ key: '/t/a', modRevision: 0 }], writes: [put('/t/a', value)] });
    const [first, second, other] = await Promise.all([attempt('1'), attempt('2'), write(store, put('/t/b'))]);
    expect(first).toEqual({ committed: true, revision: 2 });
    expect(second).toMatchObject({ committed: false, revision: 2, current: [{ value: '1' }] });
    expect(other).toBe(3);
  });

  test('do not fail for one of them whose lease is lost meanwhile', async () => {
    const clock = { nowMs: 0 };
    const store = await opened('a', { nowMs: () => clock.nowMs });
    const lease = await store.lease(1000);
    const codes = [
      codeOf(() => write(store, put('/t/a'))),
      codeOf(() => write(store, put('/t/half'), { kind: 'put', key: '/t/b', value: '', lease })),
      codeOf(() => write(store, put('/t/c'))),
    ];
    clock.nowMs = 1001;
    expect(await Promise.all(codes)).toEqual(['no error', 'lease-lost', 'no error']);
    expect((await store.list('/t/')).entries.map(({ key }) => key)).toEqual(['/t/a', '/t/c']);
    expect(await store.revision()).toBe(3);
  });
});
