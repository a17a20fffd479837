import type { IKeyValue } from 'etcd3';
import { prefixEnd } from '../bounds.js';
import type { Entry } from '../store.js';
import { toRevision } from './lineage.js';

/** Turns the port's keys into etcd's, all below one prefix ("" = none), and back. */
export class EtcdKeys {
  constructor(private readonly namespacePrefix: string) {}

  key(key: string): Buffer {
    return Buffer.from(this.namespacePrefix + key);
  }

  /** The range of all keys that begin with `prefix`. */
  range(prefix: string): { key: Buffer; range_end: Buffer } {
    return { key: this.key(prefix), range_end: this.key(prefixEnd(prefix)) };
  }

  name(key: Buffer): string {
    return key.toString().slice(this.namespacePrefix.length);
  }

  entry(kv: IKeyValue): Entry {
    return {
      key: this.name(kv.key),
      value: kv.value.toString(),
      createRevision: toRevision(kv.create_revision),
      modRevision: toRevision(kv.mod_revision),
    };
  }
}
