import { StoreError, type Store } from '@bulwark/store';
import { eventually, temporaryDirectory } from '@bulwark/testing';
import { expect, it } from 'vitest';
import { quietDecider } from '../fleet/quiet-decider.js';
import { ApiClient, POLICIES_PATH as PATH, policy } from '../in-process/api-client.js';
import { MemoryStore } from '../in-process/memory-store.js';
import { PlainAgent } from '../in-process/plain-agent.js';
import { startInProcess } from '../in-process/replica.js';

const ERA = '/bulwark/meta/era';

/** The first writes of a raised era fail, as they do when the store has just come back. */
function failingEras(store: MemoryStore, failures: { left: number }): Store {
  const commit: Store['commit'] = (transaction) => {
    const raises = transaction.writes.some(({ key }) => key === ERA) && transaction.conditions.length === 1;
    if (raises && failures.left > 0) {
      failures.left -= 1;
      return Promise.reject(new StoreError('unavailable', 'just back'));
    }
    return store.commit(transaction);
  };
  return new Proxy<Store>(store, {
    get: (target, name) => {
      if (name === 'commit') return commit;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

it('a store that is restored under a running replica: connected agents follow it, though the era takes several tries', async () => {
  const directory = temporaryDirectory('restored');
  const store = new MemoryStore();
  const failures = { left: 0 };
  const replica = await startInProcess({
    store: `file:${directory.path}`,
    createDecider: quietDecider,
    wrap: (opened) => {
      void opened.close();
      return failingEras(store, failures);
    },
  });
  const api = new ApiClient(replica.http);
  await eventually(async () => (await api.call('GET', '/readyz')).code === 200);
  const one = new PlainAgent(replica.grpc);
  try {
    await api.call('POST', PATH, policy('pay'));
    const backup = await store.list('/bulwark/objects/');
    await api.call('PATCH', `${PATH}/pay`, { spec: { timeout: { total: '9s' } } });
    await api.call('POST', PATH, policy('later'));
    await eventually(() => one.inForce.size === 2);
    failures.left = 2;
    store.silently((entries) => {
      for (const key of [...entries.keys()]) if (key.startsWith('/bulwark/objects/')) entries.delete(key);
      for (const entry of backup.entries) entries.set(entry.key, entry);
    }, backup.revision);
    store.breakWatches(new StoreError('compacted', 'restored'));
    await eventually(() => one.inForce.size === 1, { withinMs: 10_000 });
    expect([...one.inForce.values()].map(({ generation }) => generation)).toEqual([1]);
    expect(one.updates.at(-1)).toMatchObject({ full: true, version: { era: 2 } });
    expect(failures.left).toBe(0);
    expect(one.violations).toEqual([]);
  } finally {
    one.close();
    await replica.stop();
    directory.remove();
  }
});
