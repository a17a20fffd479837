import { StoreError } from '../store-error.js';
import type { Store } from '../store.js';

export interface EtcdStoreOptions {
  readonly endpoints: readonly string[];
}

export function openEtcdStore({ endpoints }: EtcdStoreOptions): Promise<Store> {
  return Promise.reject(new StoreError('unavailable', `No adapter for ${endpoints.join(', ')} yet.`));
}
