import { openEtcdStore } from './etcd/etcd-store.js';
import { openFileStore } from './file/file-store.js';
import { StoreError } from './store-error.js';
import type { Store } from './store.js';

/**
 * Opens the store that a `--store` flag names: "file:DIR", or "etcd:URL[,URL…]" with the members of one etcd cluster.
 * Rejects with a StoreError: "invalid" for anything else, or what the adapter's opening rejects with.
 */
export async function openStore(url: string): Promise<Store> {
  const [, kind, rest = ''] = /^(file|etcd):(.+)$/s.exec(url) ?? [];
  switch (kind) {
    case 'file':
      return openFileStore({ directory: rest });
    case 'etcd':
      return openEtcdStore({ endpoints: rest.split(',').map((each) => each.trim()) });
    default:
      throw new StoreError(
        'invalid',
        `"${url}" names no store. Write file:DIRECTORY for the embedded one, or etcd:http://HOST:PORT[,http://HOST:PORT…].`,
      );
  }
}
