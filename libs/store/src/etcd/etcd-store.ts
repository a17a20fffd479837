import type { ICompare, IKeyValue, IRequestOp } from 'etcd3';
import { checkKey, checkPrefix, checkTransaction, checkTtl } from '../bounds.js';
import { StoreError } from '../store-error.js';
import type {
  ChangeBatch,
  CommitResult,
  Condition,
  Entry,
  Lease,
  Listing,
  Store,
  Transaction,
  WatchOptions,
  Write,
} from '../store.js';
import { checkEndpoints, connected } from './etcd-connect.js';
import { EtcdKeys } from './etcd-keys.js';
import { grantEtcdLease, type EtcdLease } from './etcd-lease.js';
import { watchEtcd } from './etcd-watch.js';
import { EtcdMembers } from './members.js';

export interface EtcdStoreOptions {
  /** The members of one cluster, each "http://HOST:PORT" or "https://…" (all alike). */
  readonly endpoints: readonly string[];
  /** Put before every key in etcd, "/…" without a final "/"; default none. */
  readonly namespacePrefix?: string;
  /** Milliseconds for each call; default 5,000. */
  readonly timeoutMs?: number;
  /** Milliseconds in which opening must reach etcd; default 5,000. */
  readonly connectTimeoutMs?: number;
}

/** etcd 3.4 or later. Rejects with "invalid" for a malformed option and "unavailable" when etcd cannot be reached. */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<Store> {
  const { namespacePrefix = '', timeoutMs = 5000, connectTimeoutMs = 5000 } = options;
  const endpoints = checkEndpoints(options.endpoints);
  if (namespacePrefix !== '') checkKey(namespacePrefix);
  const members = new EtcdMembers({ endpoints, timeoutMs });
  try {
    await connected(members, endpoints, connectTimeoutMs);
  } catch (error) {
    members.close();
    throw error;
  }
  return new EtcdStore(members, new EtcdKeys(namespacePrefix));
}

const pageEntries = 1000;

class EtcdStore implements Store {
  readonly kind = 'etcd';
  private readonly closing = new AbortController();
  private readonly leases = new Map<string, EtcdLease>();

  constructor(
    private readonly members: EtcdMembers,
    private readonly keys: EtcdKeys,
  ) {}

  async get(key: string): Promise<Entry | undefined> {
    this.assertOpen();
    checkKey(key);
    const range = { key: this.keys.key(key) };
    const { answer } = await this.guard(
      this.members.linear('read', (client, options) => client.kv.range(range, options)),
    );
    return this.entry(answer.kvs[0]);
  }

  async list(prefix: string): Promise<Listing> {
    this.assertOpen();
    checkPrefix(prefix);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.guard(this.listAtOneRevision(prefix));
      } catch (error) {
        // Its revision was compacted between two pages.
        const again = error instanceof StoreError && error.code === 'compacted' && attempt < 3;
        if (!again) throw error;
      }
    }
  }

  async commit(transaction: Transaction): Promise<CommitResult> {
    this.assertOpen();
    checkTransaction(transaction);
    const { conditions, writes } = transaction;
    for (const write of writes) this.checkLease(write);
    const request = {
      compare: conditions.map((condition) => this.compare(condition)),
      success: writes.map((write) => this.operation(write)),
      failure: conditions.map(({ key }): IRequestOp => ({ request_range: { key: this.keys.key(key) } })),
    };
    const { answer, revision } = await this.guard(
      this.members.linear('write', (client, options) => client.kv.txn(request, options)),
    );
    if (answer.succeeded) return { committed: true, revision };
    const current = answer.responses.map((each) => this.entry(each.response_range.kvs[0]));
    return { committed: false, revision, current };
  }

  watch(prefix: string, options: WatchOptions): AsyncIterable<ChangeBatch> {
    const { members, keys } = this;
    return watchEtcd({ members, keys, closed: this.closing.signal }, prefix, options);
  }

  async lease(ttlMs: number): Promise<Lease> {
    this.assertOpen();
    checkTtl(ttlMs);
    const lease = await this.guard(grantEtcdLease(this.members, ttlMs, (id) => this.leases.delete(id)));
    if (this.closing.signal.aborted) {
      await lease.release().catch(() => undefined);
      this.assertOpen();
    }
    this.leases.set(lease.id, lease);
    return lease;
  }

  async revision(): Promise<number> {
    this.assertOpen();
    return this.guard(this.members.revision());
  }

  async close(): Promise<void> {
    if (this.closing.signal.aborted) return;
    this.closing.abort();
    await Promise.allSettled([...this.leases.values()].map((lease) => lease.release()));
    this.members.close();
  }

  private async listAtOneRevision(prefix: string): Promise<Listing> {
    const entries: Entry[] = [];
    let pinned: number | undefined;
    let range = this.keys.range(prefix);
    for (;;) {
      const page = { ...range, limit: pageEntries, ...(pinned === undefined ? {} : { revision: pinned }) };
      const { answer, revision } = await this.members.linear('read', (client, options) =>
        client.kv.range(page, options),
      );
      pinned ??= revision;
      for (const kv of answer.kvs) entries.push(this.keys.entry(kv));
      const last = answer.kvs.at(-1);
      if (!answer.more || last === undefined) return { entries, revision: pinned };
      // The first key after the last one.
      range = { ...range, key: Buffer.concat([last.key, Buffer.alloc(1)]) };
    }
  }

  private compare(condition: Condition): ICompare {
    const key = this.keys.key(condition.key);
    // A wrong spelling of these names would silently compare another field.
    return 'modRevision' in condition
      ? { key, result: 'Equal', target: 'Mod', mod_revision: condition.modRevision }
      : { key, result: 'Equal', target: 'Create', create_revision: condition.createRevision };
  }

  private operation(write: Write): IRequestOp {
    const key = this.keys.key(write.key);
    if (write.kind === 'delete') return { request_delete_range: { key } };
    return { request_put: { key, value: Buffer.from(write.value), lease: write.lease?.id ?? 0 } };
  }

  private checkLease(write: Write): void {
    if (write.kind === 'delete' || write.lease === undefined) return;
    const own = this.leases.get(write.lease.id);
    if (write.lease.lost.aborted || own?.lives() === false) {
      throw new StoreError('lease-lost', 'The lease that the write names no longer lives.');
    }
    if (own === undefined) throw new StoreError('invalid', 'The lease was not granted by this store.');
  }

  private entry(kv: IKeyValue | undefined): Entry | undefined {
    return kv && this.keys.entry(kv);
  }

  /** What fails because the store closes meanwhile says so; but a write's fate stays unknown. */
  private async guard<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      const { code } = error as StoreError;
      if (this.closing.signal.aborted && code === 'unavailable') this.assertOpen();
      throw error;
    }
  }

  private assertOpen(): void {
    if (this.closing.signal.aborted) throw new StoreError('closed', 'The store was closed.');
  }
}
