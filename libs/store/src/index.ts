export type * from './store.js';
export { StoreError, type StoreErrorCode } from './store-error.js';
export { openStore } from './open-store.js';
export { openFileStore, type FileStoreOptions } from './file/file-store.js';
export { openEtcdStore, type EtcdStoreOptions } from './etcd/etcd-store.js';
