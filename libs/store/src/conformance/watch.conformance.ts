import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChangeBatch } from '../store.js';
import { brief, put, record, remove, write, type GetFixture } from './fixture.conformance.js';
import { runHistory, historyPlan } from './history-model.js';

export function describeWatches(fixture: GetFixture): void {
  describe('watching', () => {
    test('gives changes from a past revision on, each once, then new ones', async () => {
      const { store, observer } = fixture();
      const first = await write(store, put('/t/a', '1'));
      const second = await write(store, put('/t/a', '2'));
      const watch = record(observer, '/t/', first);
      await watch.until(second);
      const third = await write(store, put('/t/b', '3'));
      await watch.until(third);
      expect(watch.batches.map(brief)).toEqual([`${second} +/t/a=2`, `${third} +/t/b=3`]);
      watch.stop();
      expect(await watch.ended).toBe('silently');
    });

    test('gives the changes of one revision together, in the order of the writes', async () => {
      const { store } = fixture();
      const before = await write(store, put('/t/old'));
      const watch = record(store, '/t/', before);
      const revision = await write(store, put('/t/z', '1'), remove('/t/old'), put('/u/x'), put('/t/a', '2'));
      await watch.until(revision);
      expect(watch.batches.map(brief)).toEqual([`${revision} +/t/z=1 -/t/old +/t/a=2`]);
      watch.stop();
    });

    test('tells what was there before, for puts and deletions', async () => {
      const { store } = fixture();
      const created = await write(store, put('/t/a', 'one'));
      const changed = await write(store, put('/t/a', 'two'));
      const deleted = await write(store, remove('/t/a'));
      const watch = record(store, '/t/', created - 1);
      await watch.until(deleted);
      const one = { key: '/t/a', value: 'one', createRevision: created, modRevision: created };
      const two = { key: '/t/a', value: 'two', createRevision: created, modRevision: changed };
      expect(watch.batches).toEqual([
        { revision: created, changes: [{ kind: 'put', entry: one, previous: undefined }] },
        { revision: changed, changes: [{ kind: 'put', entry: two, previous: one }] },
        { revision: deleted, changes: [{ kind: 'delete', key: '/t/a', previous: two }] },
      ]);
      watch.stop();
    });

    test('gives only what is below the prefix', async () => {
      const { store } = fixture();
      const watch = record(store, '/t/team/', await store.revision());
      await write(store, put('/t/team-b/a'));
      await write(store, put('/t/team'));
      await write(store, put('/t/team0'));
      const last = await write(store, put('/t/team/a'), put('/t/team-b/b'));
      await watch.until(last);
      expect(watch.batches.map(brief)).toEqual([`${last} +/t/team/a=v`]);
      watch.stop();
    });

    test('joins a listing without loss or doubles, while others write', async () => {
      const { store, observer } = fixture();
      let writing = true;
      const writer = (async () => {
        let last = 0;
        for (let turn = 0; writing; turn += 1)
          last = await write(store, put(`/t/${turn % 10}`, String(turn)));
        return last;
      })();
      const views = [];
      for (let turn = 0; turn < 5; turn += 1) {
        const { entries, revision } = await observer.list('/t/');
        views.push({
          revision,
          seen: new Map(entries.map((each) => [each.key, each])),
          watch: record(observer, '/t/', revision),
        });
      }
      writing = false;
      const last = await writer;
      const { entries } = await store.list('/t/');
      for (const { revision, seen, watch } of views) {
        // The last listing may have seen the last write already.
        if (revision < last) await watch.until(last);
        for (const batch of watch.batches) apply(seen, batch);
        expect([...seen.values()].sort((a, b) => (a.key < b.key ? -1 : 1))).toEqual(entries);
        watch.stop();
      }
    });

    test('shows every watcher exactly the suffix it asked for, under concurrent writers', async () => {
      let turn = 0;
      const property = fc.asyncProperty(historyPlan, async (plan) => {
        turn += 1;
        const { expected, seen } = await runHistory(fixture(), `/t/run-${turn}`, plan);
        expect(seen).toEqual(expected);
      });
      await fc.assert(property, { numRuns: 8, endOnFailure: true });
    }, 60_000);

    test('waits for a slow consumer and loses nothing meanwhile', async () => {
      const { store, observer } = fixture();
      const afterRevision = await store.revision();
      const controller = new AbortController();
      const iterator = observer
        .watch('/t/', { afterRevision, signal: controller.signal })
        [Symbol.asyncIterator]();
      await write(store, put('/t/0', '0'));
      expect((await iterator.next()).done).toBe(false);
      const value = 'x'.repeat(20_000);
      let last = 0;
      for (let turn = 1; turn <= 600; turn += 1) last = await write(store, put(`/t/${turn}`, value));
      const keys = [];
      for (let revision = 0; revision < last;) {
        const next = await iterator.next();
        if (next.done) break;
        revision = next.value.revision;
        keys.push(...next.value.changes.map((each) => (each.kind === 'put' ? each.entry.key : '')));
      }
      expect(keys).toEqual(Array.from({ length: 600 }, (_, at) => `/t/${at + 1}`));
      controller.abort();
      expect((await iterator.next()).done).toBe(true);
    });

    test('ends with "compacted" when its history is gone, and a listing recovers', async () => {
      const { store } = fixture();
      const old = await write(store, put('/t/a'), put('/t/b'));
      await write(store, remove('/t/a'));
      await fixture().compact();
      expect(await record(store, '/t/', old).ended).toBe('compacted');
      const { entries, revision } = await store.list('/t/');
      expect(entries.map(({ key }) => key)).toEqual(['/t/b']);
      const watch = record(store, '/t/', revision);
      const next = await write(store, put('/t/c'));
      await watch.until(next);
      expect(watch.batches.map(brief)).toEqual([`${next} +/t/c=v`]);
      watch.stop();
    });

    test('a compaction does not end a watch that has seen everything', async () => {
      const { store } = fixture();
      const watch = record(store, '/t/', await store.revision());
      const first = await write(store, put('/t/a'));
      await watch.until(first);
      await fixture().compact();
      const second = await write(store, put('/t/b'));
      await watch.until(second);
      expect(watch.batches.map(({ revision }) => revision)).toEqual([first, second]);
      watch.stop();
    });

    test('ends with "compacted" when it asks for a future the store has not reached', async () => {
      const { store } = fixture();
      expect(await record(store, '/t/', (await store.revision()) + 1000).ended).toBe('compacted');
    });

    test('ends silently when aborted: before it begins, while it waits, and between two changes', async () => {
      const { store } = fixture();
      const revision = await store.revision();
      const signal = AbortSignal.abort();
      for await (const batch of store.watch('/t/', { afterRevision: 0, signal }))
        expect(batch).toBeUndefined();
      const waiting = record(store, '/t/', revision);
      waiting.stop();
      expect(await waiting.ended).toBe('silently');
      await write(store, put('/t/a'));
      await write(store, put('/t/b'));
      const controller = new AbortController();
      const batches: ChangeBatch[] = [];
      for await (const batch of store.watch('/t/', { afterRevision: revision, signal: controller.signal })) {
        batches.push(batch);
        controller.abort();
      }
      expect(batches).toHaveLength(1);
    });

    test('may be left at any change', async () => {
      const { store } = fixture();
      const afterRevision = await store.revision();
      await write(store, put('/t/a'));
      const { signal } = new AbortController();
      for await (const batch of store.watch('/t/', { afterRevision, signal })) {
        expect(batch.changes).toHaveLength(1);
        break;
      }
      await write(store, put('/t/b'));
    });
  });
}

function apply<T extends { key: string }>(seen: Map<string, T>, batch: ChangeBatch): void {
  for (const change of batch.changes) {
    if (change.kind === 'delete') seen.delete(change.key);
    else seen.set(change.entry.key, change.entry as unknown as T);
  }
}
