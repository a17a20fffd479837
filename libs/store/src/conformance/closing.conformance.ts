import { describe, expect, test } from 'vitest';
import { codeOf, put, record, write, type GetFixture } from './fixture.conformance.js';

export function describeClosing(fixture: GetFixture): void {
  describe('closing', () => {
    test('ends watches and leases, and refuses what comes later', async () => {
      const { store } = fixture();
      const revision = await write(store, put('/t/a'));
      const lease = await store.lease(5000);
      const watch = record(store, '/t/', revision - 1);
      await watch.until(revision);
      await store.close();
      expect(await watch.ended).toBe('closed');
      expect(lease.lost.aborted).toBe(true);
      expect(lease.lost.reason).toMatchObject({ code: 'closed' });
      expect(await codeOf(() => store.get('/t/a'))).toBe('closed');
      expect(await codeOf(() => store.list('/t/'))).toBe('closed');
      expect(await codeOf(() => store.revision())).toBe('closed');
      expect(await codeOf(() => store.lease(5000))).toBe('closed');
      expect(await codeOf(() => write(store, put('/t/a')))).toBe('closed');
      expect(await record(store, '/t/', revision).ended).toBe('closed');
      await lease.release();
    });

    test('may be asked for twice', async () => {
      const { store } = fixture();
      await Promise.all([store.close(), store.close()]);
      await store.close();
    });
  });
}
