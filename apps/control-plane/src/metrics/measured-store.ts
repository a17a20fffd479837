import { StoreError, type Store } from '@bulwark/store';

export type Measure = (operation: string, result: string, seconds: number) => void;

/** A store whose requests are timed. Watches and leases are long-lived and are not. */
export function measuredStore(store: Store, measure: Measure): Store {
  const timed = async <T>(operation: string, request: () => Promise<T>): Promise<T> => {
    const from = performance.now();
    let result = 'ok';
    try {
      return await request();
    } catch (error) {
      result = error instanceof StoreError ? error.code : 'error';
      throw error;
    } finally {
      measure(operation, result, (performance.now() - from) / 1_000);
    }
  };
  return {
    kind: store.kind,
    get: (key) => timed('get', () => store.get(key)),
    list: (prefix) => timed('list', () => store.list(prefix)),
    commit: (transaction) => timed('commit', () => store.commit(transaction)),
    revision: () => timed('revision', () => store.revision()),
    watch: (prefix, options) => store.watch(prefix, options),
    lease: (ttlMs) => store.lease(ttlMs),
    close: () => store.close(),
  };
}
