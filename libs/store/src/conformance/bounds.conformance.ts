import { describe, expect, test } from 'vitest';
import { codeOf, put, remove, write, type GetFixture } from './fixture.conformance.js';

const mebibyte = 1024 * 1024;

export function describeBounds(fixture: GetFixture): void {
  describe('bounds', () => {
    const badKeys = [
      '',
      't',
      't/a',
      '/',
      '/t/',
      '/t//a',
      '//t',
      `/${'k'.repeat(1024)}`,
      `/${'é'.repeat(512)}`,
      '/\ud800',
    ];
    test.each(badKeys)('refuses the key %j everywhere', async (key) => {
      const { store } = fixture();
      expect(await codeOf(() => store.get(key))).toBe('invalid');
      expect(await codeOf(() => write(store, put(key)))).toBe('invalid');
      expect(await codeOf(() => write(store, remove(key)))).toBe('invalid');
      const conditions = [{ key, modRevision: 0 }];
      expect(await codeOf(() => store.commit({ conditions, writes: [] }))).toBe('invalid');
    });

    test.each(['', 't/', '/t', '//', '/t//'])(
      'refuses the prefix %j to list and to watch',
      async (prefix) => {
        const { store } = fixture();
        expect(await codeOf(() => store.list(prefix))).toBe('invalid');
        const { signal } = new AbortController();
        const watch = async () => {
          for await (const batch of store.watch(prefix, { afterRevision: 0, signal })) return batch;
          return undefined;
        };
        expect(await codeOf(watch)).toBe('invalid');
      },
    );

    test('takes keys of 1,024 bytes and values of 1 MiB, and no more', async () => {
      const { store } = fixture();
      const key = `/${'k'.repeat(1023)}`;
      const value = 'é'.repeat(mebibyte / 2);
      await write(store, put(key, value));
      expect((await store.get(key))?.value === value).toBe(true);
      expect(await codeOf(() => write(store, put('/t/a', `${value}x`)))).toBe('invalid');
      expect(await codeOf(() => write(store, put('/t/a', value), put('/t/b', value)))).toBe('invalid');
      expect((await store.list('/t/')).entries).toEqual([]);
    });

    test('refuses text that is no Unicode', async () => {
      const { store } = fixture();
      expect(await codeOf(() => write(store, put('/t/a', 'half \ud83e')))).toBe('invalid');
    });

    test('takes 100 conditions and 100 writes, and no more', async () => {
      const { store } = fixture();
      const keys = Array.from({ length: 101 }, (_, at) => `/t/${at}`);
      const conditions = keys.map((key) => ({ key, modRevision: 0 }));
      const writes = keys.map((key) => put(key));
      expect(await codeOf(() => store.commit({ conditions, writes: [] }))).toBe('invalid');
      expect(await codeOf(() => store.commit({ conditions: [], writes }))).toBe('invalid');
      const most = { conditions: conditions.slice(1), writes: writes.slice(1) };
      expect((await store.commit(most)).committed).toBe(true);
      const failed = await store.commit(most);
      expect(failed.committed ? [] : failed.current).toHaveLength(100);
    });

    test('refuses to write one key twice', async () => {
      const { store } = fixture();
      expect(await codeOf(() => write(store, put('/t/a'), remove('/t/a')))).toBe('invalid');
    });

    test.each([-1, 0.5, NaN, 2 ** 53])('refuses %d as a revision', async (revision) => {
      const { store } = fixture();
      const conditions = [{ key: '/t/a', modRevision: revision }];
      expect(await codeOf(() => store.commit({ conditions, writes: [] }))).toBe('invalid');
    });

    test.each([0, 999, 3_600_001, NaN])('refuses a lease of %d ms', async (ttlMs) => {
      const { store } = fixture();
      expect(await codeOf(() => store.lease(ttlMs))).toBe('invalid');
    });
  });
}
