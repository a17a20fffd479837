/**
 * The store port. Keys are text, begin with "/", are at most 1,024 bytes and contain no empty segment (so they do not
 * end in "/"); values are UTF-8 text of at most 1 MiB. Keys sort by their bytes. Revisions are positive safe integers:
 * one counter for the whole store, raised by one for each committed transaction that changes something. An empty new
 * store is at revision 1.
 *
 * Everything rejects with a `StoreError`; every call answers within a bounded time, whatever the network does.
 */
export interface Store {
  /** "file" or "etcd": for people and logs. */
  readonly kind: string;

  /** The newest committed value, read linearly: it sees every commit acknowledged before the call. */
  get(key: string): Promise<Entry | undefined>;

  /**
   * All entries whose key begins with `prefix`, in key order, at one revision. `prefix` must end in "/", so that
   * "/a/team/" never matches "/a/team-b/…".
   */
  list(prefix: string): Promise<Listing>;

  /**
   * Applies all writes at one revision if every condition holds, else none. Acknowledged = durable: a crash at any
   * later instant does not lose it. At most 100 conditions and 100 writes, 1.25 MiB of keys and values in all; one key
   * is written at most once. A put of an equal value is a change; a deletion of an absent key is none. A put without
   * a lease takes the key off the lease it was under. A commit whose fate is unknown (connection lost) throws `StoreError` code "unknown-outcome".
   */
  commit(transaction: Transaction): Promise<CommitResult>;

  /**
   * Every change under `prefix` (which ends in "/") from `afterRevision` (exclusive) on, in order, each once.
   * Survives reconnects of the adapter; while the store cannot be reached it waits. Ends with `StoreError` code
   * "compacted" when the history after the wanted point is gone, by compaction or because the store went back to an
   * older state (a restored backup; also when `afterRevision` is newer than the store): the caller lists again and
   * compares. Ends with "closed" when the store closes, silently when `signal` aborts. A slow consumer costs bounded
   * memory.
   */
  watch(prefix: string, options: WatchOptions): AsyncIterable<ChangeBatch>;

  /**
   * Grants a lease and keeps it alive until `release` or loss. `ttlMs` from 1,000 to 3,600,000; the store may round it
   * up to what it can hold (etcd: whole seconds, two at least with its usual election timeout).
   */
  lease(ttlMs: number): Promise<Lease>;

  /** The newest committed revision; also the health check. */
  revision(): Promise<number>;

  /** Ends watches and leases (revoked) and lets go of the file or connection. */
  close(): Promise<void>;
}

export interface Entry {
  readonly key: string;
  readonly value: string;
  /** Revision at which the key came to be (again, after a deletion). */
  readonly createRevision: number;
  /** Revision of its last change. */
  readonly modRevision: number;
}

export interface Listing {
  readonly entries: readonly Entry[];
  /** The store's revision the listing reflects: a watch after it misses and doubles nothing. */
  readonly revision: number;
}

/** `0` as a revision means "the key does not exist". */
export type Condition =
  | { readonly key: string; readonly modRevision: number }
  | { readonly key: string; readonly createRevision: number };

export type Write =
  | { readonly kind: 'put'; readonly key: string; readonly value: string; readonly lease?: Lease }
  | { readonly kind: 'delete'; readonly key: string };

export interface Transaction {
  readonly conditions: readonly Condition[];
  readonly writes: readonly Write[];
}

export type CommitResult =
  /** `revision` is the commit's own (the store's current one when nothing changed). */
  | { readonly committed: true; readonly revision: number }
  /** Current entries of the conditions' keys, in their order; undefined = absent. */
  | {
      readonly committed: false;
      readonly revision: number;
      readonly current: readonly (Entry | undefined)[];
    };

export interface WatchOptions {
  readonly afterRevision: number;
  readonly signal: AbortSignal;
}

/** All changes under the prefix of one revision, in the order in which the transaction wrote them. At least one. */
export interface ChangeBatch {
  readonly revision: number;
  readonly changes: readonly Change[];
}

export type Change =
  /** `previous` is undefined when the key is new (`entry.createRevision` is `entry.modRevision` then). */
  | { readonly kind: 'put'; readonly entry: Entry; readonly previous: Entry | undefined }
  /** In both, `previous` may also be undefined when etcd compacted it away. */
  | { readonly kind: 'delete'; readonly key: string; readonly previous: Entry | undefined };

export interface Lease {
  readonly id: string;
  /**
   * Aborts as soon as the holder can no longer be sure that the lease lives: judged on the monotonic clock,
   * before the store itself lets it lapse. Never un-aborts; ask for a new lease. `lost.reason` is a `StoreError`:
   * "lease-lost" when it lapsed, "closed" when it was given back or the store closed.
   */
  readonly lost: AbortSignal;
  /**
   * Gives it back: `lost` aborts at once, and its keys are deleted (at one revision) when this resolves. When the store
   * cannot be reached it rejects with "unavailable", and the keys go when the time to live ends. Idempotent.
   */
  release(): Promise<void>;
}
