import { describe, expect, test } from 'vitest';
import { put, remove, write, type GetFixture } from './fixture.conformance.js';

export function describeReads(fixture: GetFixture): void {
  describe('reading', () => {
    test('answers what was committed last, with its revisions', async () => {
      const { store } = fixture();
      const created = await write(store, put('/t/a', 'one'));
      const changed = await write(store, put('/t/a', 'two'));
      expect(await store.get('/t/a')).toEqual({
        key: '/t/a',
        value: 'two',
        createRevision: created,
        modRevision: changed,
      });
    });

    test('answers undefined for what is absent or deleted', async () => {
      const { store } = fixture();
      expect(await store.get('/t/a')).toBeUndefined();
      await write(store, put('/t/a'));
      await write(store, remove('/t/a'));
      expect(await store.get('/t/a')).toBeUndefined();
    });

    test('gives a key that comes again a new create revision', async () => {
      const { store } = fixture();
      await write(store, put('/t/a'));
      await write(store, remove('/t/a'));
      const again = await write(store, put('/t/a'));
      expect(await store.get('/t/a')).toMatchObject({ createRevision: again, modRevision: again });
    });

    test('keeps values as they are, whatever letters they hold', async () => {
      const { store } = fixture();
      const values = [
        '',
        ' ',
        '\u0000 nul',
        'ä ß 東京 \u{1f9f1}',
        '{"json": "\\u0000"}\n',
        "'; DROP TABLE entries",
      ];
      for (const [at, value] of values.entries()) await write(store, put(`/t/${at}`, value));
      const { entries } = await store.list('/t/');
      expect(entries.map(({ value }) => value)).toEqual(values);
    });

    test('lists a prefix in byte order of the keys', async () => {
      const { store } = fixture();
      // By UTF-16 units the last two would be the other way round; by locale many more.
      const sorted = [
        '/t/!',
        '/t/-',
        '/t/10',
        '/t/9',
        '/t/B',
        '/t/a',
        '/t/a-',
        '/t/a/b',
        '/t/a0',
        '/t/é',
        '/t/\uff5e',
        '/t/\u{1f9f1}',
      ];
      await write(store, ...[...sorted].reverse().map((key) => put(key)));
      const { entries } = await store.list('/t/');
      expect(entries.map(({ key }) => key)).toEqual(sorted);
    });

    test('lists only what is below the prefix, not what its name begins like', async () => {
      const { store } = fixture();
      await write(
        store,
        put('/t/team/a'),
        put('/t/team-b/a'),
        put('/t/team'),
        put('/t/team0'),
        put('/t/tea/m'),
      );
      const { entries } = await store.list('/t/team/');
      expect(entries.map(({ key }) => key)).toEqual(['/t/team/a']);
    });

    test('lists everything below "/"', async () => {
      const { store } = fixture();
      await write(store, put('/t/a'), put('/u'));
      const { entries } = await store.list('/');
      expect(entries.map(({ key }) => key)).toEqual(['/t/a', '/u']);
    });

    test('lists many entries at one revision, while others write', async () => {
      const { store, observer } = fixture();
      const count = 2500;
      for (let from = 0; from < count; from += 100) {
        await write(
          store,
          ...Array.from({ length: 100 }, (_, at) =>
            put(`/t/many/${String(from + at).padStart(5, '0')}`, '0'),
          ),
        );
      }
      let writing = true;
      const writer = (async () => {
        // Both change together, always: a listing that sees one without the other is torn.
        for (let turn = 1; writing; turn += 1) {
          await write(observer, put('/t/many/00000', String(turn)), put('/t/many/02499', String(turn)));
        }
      })();
      try {
        for (let turn = 0; turn < 5; turn += 1) {
          const { entries, revision } = await store.list('/t/many/');
          expect(entries).toHaveLength(count);
          expect(entries.at(-1)?.value).toBe(entries[0]?.value);
          expect(entries[0]?.modRevision).toBeLessThanOrEqual(revision);
        }
      } finally {
        writing = false;
        await writer;
      }
    });

    test('tells the newest revision, which reading does not raise', async () => {
      const { store } = fixture();
      const revision = await write(store, put('/t/a'));
      await store.get('/t/a');
      expect((await store.list('/t/')).revision).toBe(revision);
      expect(await store.revision()).toBe(revision);
    });
  });
}
