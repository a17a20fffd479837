import { describe, expect, test } from 'vitest';
import { put, remove, write, type GetFixture } from './fixture.conformance.js';

export function describeCommits(fixture: GetFixture): void {
  describe('committing', () => {
    test('gives all writes of a transaction one revision, above all before it', async () => {
      const { store } = fixture();
      const first = await write(store, put('/t/a'), put('/u/b'));
      const second = await write(store, put('/u/c'));
      expect(second).toBeGreaterThan(first);
      expect((await store.get('/t/a'))?.modRevision).toBe(first);
      expect((await store.get('/u/b'))?.modRevision).toBe(first);
      expect(await store.revision()).toBe(second);
    });

    test('applies nothing unless every condition holds, and answers the current entries in their order', async () => {
      const { store } = fixture();
      const revision = await write(store, put('/t/a', 'one'));
      const result = await store.commit({
        conditions: [
          { key: '/t/a', modRevision: revision },
          { key: '/t/missing', modRevision: revision },
          { key: '/t/a', createRevision: revision },
        ],
        writes: [put('/t/a', 'two'), put('/t/b'), remove('/t/a/c')],
      });
      const a = { key: '/t/a', value: 'one', createRevision: revision, modRevision: revision };
      expect(result).toEqual({ committed: false, revision, current: [a, undefined, a] });
      expect((await store.list('/t/')).entries).toEqual([a]);
    });

    test('compares the mod revision with the last change', async () => {
      const { store } = fixture();
      const first = await write(store, put('/t/a', 'one'));
      const second = await write(store, put('/t/a', 'two'));
      const attempt = (modRevision: number) =>
        store.commit({ conditions: [{ key: '/t/a', modRevision }], writes: [put('/t/a', 'three')] });
      expect((await attempt(first)).committed).toBe(false);
      expect((await attempt(second + 1)).committed).toBe(false);
      expect((await attempt(second)).committed).toBe(true);
    });

    test('compares the create revision with the birth, whatever changed since', async () => {
      const { store } = fixture();
      const born = await write(store, put('/t/a', 'one'));
      const changed = await write(store, put('/t/a', 'two'));
      const attempt = (createRevision: number) =>
        store.commit({ conditions: [{ key: '/t/a', createRevision }], writes: [put('/t/b')] });
      expect((await attempt(changed)).committed).toBe(false);
      expect((await attempt(born)).committed).toBe(true);
    });

    test.each(['modRevision', 'createRevision'] as const)(
      'takes 0 as the %s of an absent key',
      async (field) => {
        const { store } = fixture();
        const key = '/t/a';
        const condition = field === 'modRevision' ? { key, modRevision: 0 } : { key, createRevision: 0 };
        const create = () => store.commit({ conditions: [condition], writes: [put(key)] });
        expect((await create()).committed).toBe(true);
        expect((await create()).committed).toBe(false);
        await write(store, remove(key));
        expect((await create()).committed).toBe(true);
      },
    );

    test('raises the revision for a put of an equal value, not when nothing changes', async () => {
      const { store } = fixture();
      const first = await write(store, put('/t/a', 'same'));
      const second = await write(store, put('/t/a', 'same'));
      expect(second).toBeGreaterThan(first);
      expect(await write(store, remove('/t/absent'))).toBe(second);
      expect(await write(store)).toBe(second);
      expect(await store.revision()).toBe(second);
    });

    test('only compares when there is nothing to write', async () => {
      const { store } = fixture();
      const revision = await write(store, put('/t/a'));
      const compare = (modRevision: number) =>
        store.commit({ conditions: [{ key: '/t/a', modRevision }], writes: [] });
      expect(await compare(revision)).toEqual({ committed: true, revision });
      expect(await compare(revision - 1)).toMatchObject({ committed: false, revision });
    });

    test('lets exactly one of many racing writers win', async () => {
      const { store, observer } = fixture();
      const created = await Promise.all(
        Array.from({ length: 30 }, (_, at) =>
          (at % 2 === 0 ? store : observer).commit({
            conditions: [{ key: '/t/lock', modRevision: 0 }],
            writes: [put('/t/lock', String(at)), put(`/t/winner/${at}`)],
          }),
        ),
      );
      const winner = created.findIndex(({ committed }) => committed);
      expect(created.filter(({ committed }) => committed)).toHaveLength(1);
      expect((await store.get('/t/lock'))?.value).toBe(String(winner));
      expect((await store.list('/t/winner/')).entries.map(({ key }) => key)).toEqual([`/t/winner/${winner}`]);
      for (const each of created) {
        if (!each.committed) expect(each.current[0]?.value).toBe(String(winner));
      }
    });

    test('loses no increment when many writers count by compare and write', async () => {
      const { store, observer } = fixture();
      await write(store, put('/t/counter', '0'));
      const increment = async (by: typeof store): Promise<void> => {
        for (;;) {
          const entry = await by.get('/t/counter');
          const next = put('/t/counter', String(Number(entry?.value) + 1));
          const conditions = [{ key: '/t/counter', modRevision: entry?.modRevision ?? 0 }];
          if ((await by.commit({ conditions, writes: [next] })).committed) return;
        }
      };
      const workers = Array.from({ length: 8 }, async (_, at) => {
        for (let turn = 0; turn < 10; turn += 1) await increment(at % 2 === 0 ? store : observer);
      });
      await Promise.all(workers);
      expect((await store.get('/t/counter'))?.value).toBe('80');
    });

    test('is seen by every read that begins after its acknowledgement', async () => {
      const { store, observer } = fixture();
      for (let turn = 0; turn < 50; turn += 1) {
        const revision = await write(store, put('/t/a', String(turn)));
        expect((await observer.get('/t/a'))?.value).toBe(String(turn));
        expect(await observer.revision()).toBeGreaterThanOrEqual(revision);
      }
    });
  });
}
