import { eventually } from '@bulwark/testing';
import { describe, expect, test } from 'vitest';
import type { Lease, Write } from '../store.js';
import { brief, codeOf, put, record, remove, write, type GetFixture } from './fixture.conformance.js';

const under = (lease: Lease, key: string): Write => ({ kind: 'put', key, value: 'v', lease });

export function describeLeases(fixture: GetFixture): void {
  describe('leases', () => {
    test('a release deletes the keys at one revision and tells the holder', async () => {
      const { store, observer } = fixture();
      const lease = await store.lease(5000);
      await write(store, put('/t/free'), under(lease, '/t/b'), under(lease, '/t/a'));
      const before = await store.revision();
      const watch = record(observer, '/t/', before);
      expect(lease.lost.aborted).toBe(false);
      await lease.release();
      expect(lease.lost.aborted).toBe(true);
      expect(lease.lost.reason).toMatchObject({ code: 'closed' });
      expect((await observer.list('/t/')).entries.map(({ key }) => key)).toEqual(['/t/free']);
      await watch.until(before + 1);
      expect(watch.batches).toHaveLength(1);
      expect(watch.batches.map(({ changes }) => changes.map((each) => each.kind))).toEqual([
        ['delete', 'delete'],
      ]);
      watch.stop();
      await lease.release();
    });

    test('a lease without keys is released without a change', async () => {
      const { store } = fixture();
      const before = await store.revision();
      await (await store.lease(5000)).release();
      expect(await store.revision()).toBe(before);
    });

    test('a key goes with the lease of its last put', async () => {
      const { store } = fixture();
      const [first, second] = [await store.lease(5000), await store.lease(5000)];
      await write(store, under(first, '/t/moved'), under(first, '/t/freed'), under(first, '/t/gone'));
      await write(store, under(second, '/t/moved'), put('/t/freed'), remove('/t/gone'));
      await write(store, put('/t/gone'));
      await first.release();
      expect((await store.list('/t/')).entries.map(({ key }) => key)).toEqual([
        '/t/freed',
        '/t/gone',
        '/t/moved',
      ]);
      await second.release();
      expect((await store.list('/t/')).entries.map(({ key }) => key)).toEqual(['/t/freed', '/t/gone']);
    });

    test('a write under a released lease is refused whole', async () => {
      const { store } = fixture();
      const lease = await store.lease(5000);
      await lease.release();
      expect(await codeOf(() => write(store, put('/t/a'), under(lease, '/t/b')))).toBe('lease-lost');
      expect((await store.list('/t/')).entries).toEqual([]);
    });

    test('lives on for as long as its holder does', async () => {
      const { store, observer } = fixture();
      const lease = await store.lease(1000);
      await write(store, under(lease, '/t/a'));
      const started = performance.now();
      await eventually(() => performance.now() - started > 3500, { everyMs: 100 });
      expect(lease.lost.aborted).toBe(false);
      expect(await observer.get('/t/a')).toBeDefined();
      await lease.release();
    });

    test('a lapse is known to the holder before anybody sees the keys go', async () => {
      const { store, observer } = fixture();
      const ttlMs = 2000;
      const lease = await store.lease(ttlMs);
      const revision = await write(store, under(lease, '/t/a'));
      const knownAtDeletion: boolean[] = [];
      const controller = new AbortController();
      const watching = (async () => {
        for await (const batch of observer.watch('/t/', {
          afterRevision: revision,
          signal: controller.signal,
        })) {
          knownAtDeletion.push(lease.lost.aborted);
          expect(brief(batch)).toBe(`${batch.revision} -/t/a`);
        }
      })();
      await fixture().lapse(ttlMs);
      await eventually(async () => (await observer.get('/t/a')) === undefined, { withinMs: 10_000 });
      await eventually(() => knownAtDeletion.length === 1);
      controller.abort();
      await watching;
      expect(knownAtDeletion).toEqual([true]);
      expect(lease.lost.reason).toMatchObject({ code: 'lease-lost' });
      expect(await codeOf(() => write(store, under(lease, '/t/b')))).toBe('lease-lost');
      const next = await eventually(() => store.lease(ttlMs), { withinMs: 10_000 });
      await write(store, under(next, '/t/a'));
      await next.release();
    });

    test('a lease of another store is refused', async () => {
      const { store } = fixture();
      const foreign: Lease = {
        id: '1234',
        lost: new AbortController().signal,
        release: () => Promise.resolve(),
      };
      expect(await codeOf(() => write(store, under(foreign, '/t/a')))).toBe('invalid');
    });
  });
}
