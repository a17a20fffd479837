/**
 * The store port. Keys are text, begin with "/", are at most 1,024 bytes and contain no empty segment; values are
 * UTF-8 text of at most 1 MiB. Revisions are positive safe integers: one counter for the whole store, raised by
 * one for each committed transaction that changes something.
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
   * later instant does not lose it. At most 100 conditions and 100 writes; one key is written at most once.
   * A commit whose fate is unknown (connection lost) throws `StoreError` code "unknown-outcome".
   */
  commit(transaction: Transaction): Promise<CommitResult>;

  /**
   * Every change under `prefix` (which ends in "/") from `afterRevision` (exclusive) on, in order, each once.
   * Survives reconnects of the adapter. Ends with `StoreError` code "compacted" when history before the wanted
   * point is gone: the caller lists again and compares. Ends silently when `signal` aborts.
   */
  watch(prefix: string, options: WatchOptions): AsyncIterable<ChangeBatch>;

  /** Grants a lease and keeps it alive until `release` or loss. `ttlMs` from 1,000 to 3,600,000. */
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

/** All changes under the prefix of one revision. */
export interface ChangeBatch {
  readonly revision: number;
  readonly changes: readonly Change[];
}

export type Change =
  | { readonly kind: 'put'; readonly entry: Entry; readonly previous: Entry | undefined }
  /** `previous` may be unknown when the adapter's history lost it. */
  | { readonly kind: 'delete'; readonly key: string; readonly previous: Entry | undefined };

export interface Lease {
  readonly id: string;
  /**
   * Aborts as soon as the holder can no longer be sure that the lease lives: judged on the monotonic clock,
   * before the store itself lets it lapse. Never un-aborts; ask for a new lease.
   */
  readonly lost: AbortSignal;
  /** Gives it back; its keys are deleted. Idempotent. */
  release(): Promise<void>;
}
