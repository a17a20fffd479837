import { randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { checkKey, checkPrefix, checkTransaction, checkTtl } from '../bounds.js';
import { StoreError } from '../store-error.js';
import type {
  Change,
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
import { openDatabase } from './database.js';
import { EntryTable } from './entry-table.js';
import { workError } from './file-errors.js';
import { FileLease } from './file-lease.js';
import { GroupCommit, type Job } from './group-commit.js';
import { HistoryTable } from './history-table.js';
import { WatchHub } from './watch-hub.js';

export interface FileStoreOptions {
  /** Made when absent. One server at a time uses it. */
  readonly directory: string;
  /** Revisions kept for watches, at least 1; default 10,000. */
  readonly historyLimit?: number;
  /** Bytes of keys and values kept for watches; default 64 MiB. */
  readonly historyBytesLimit?: number;
  /** Monotonic milliseconds, for leases; default `performance.now`. */
  readonly nowMs?: () => number;
}

/**
 * The embedded store: one SQLite file. Rejects with a StoreError whose message says what to do: "in-use", "read-only",
 * "newer-version", "corrupt", "invalid" (not a directory), "unavailable".
 */
export async function openFileStore(options: FileStoreOptions): Promise<Store> {
  const { historyLimit = 10_000, historyBytesLimit = 64 * 1024 * 1024 } = options;
  const database = openDatabase(options.directory);
  try {
    const limits = { revisions: Math.max(1, historyLimit), bytes: historyBytesLimit };
    const store = new FileStore(database, new HistoryTable(database, limits), options.nowMs ?? monotonicMs);
    await store.dropForeignLeases();
    return store;
  } catch (error) {
    database.close();
    throw error;
  }
}

const monotonicMs = () => performance.now();

class FileStore implements Store {
  readonly kind = 'file';
  private readonly entries: EntryTable;
  private readonly hub: WatchHub;
  private readonly group: GroupCommit;
  private readonly leases = new Map<string, FileLease>();
  private closed = false;

  constructor(
    private readonly database: DatabaseSync,
    private readonly history: HistoryTable,
    private readonly nowMs: () => number,
  ) {
    this.entries = new EntryTable(database);
    this.hub = new WatchHub(history);
    this.group = new GroupCommit(database, history, (keys) => this.hub.publish(keys));
  }

  // Reads run between transactions, never inside one: what they see is durable.
  get(key: string): Promise<Entry | undefined> {
    return this.read(() => {
      checkKey(key);
      return this.entries.get(key);
    });
  }

  list(prefix: string): Promise<Listing> {
    return this.read(() => {
      checkPrefix(prefix);
      return { entries: this.entries.list(prefix), revision: this.history.revision };
    });
  }

  revision(): Promise<number> {
    return this.read(() => this.history.revision);
  }

  async commit(transaction: Transaction): Promise<CommitResult> {
    this.assertOpen();
    checkTransaction(transaction);
    const leases = transaction.writes.map((write) => this.leaseOf(write));
    return this.group.run(this.commitJob(transaction, leases));
  }

  watch(prefix: string, options: WatchOptions): AsyncIterable<ChangeBatch> {
    return this.hub.watch(prefix, options);
  }

  async lease(ttlMs: number): Promise<Lease> {
    this.assertOpen();
    checkTtl(ttlMs);
    const lease = new FileLease({
      id: randomUUID(),
      ttlMs,
      nowMs: this.nowMs,
      revoke: (id) => this.group.run(this.revokeJob(id)),
      forget: (id) => this.leases.delete(id),
    });
    this.leases.set(lease.id, lease);
    return Promise.resolve(lease);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    const released = [...this.leases.values()].map((lease) => lease.release());
    this.group.drain();
    this.hub.close();
    this.database.close();
    await Promise.allSettled(released);
  }

  /** Leases end with their process; a former process that was killed could not delete its keys. */
  async dropForeignLeases(): Promise<void> {
    const rows = this.database.prepare('SELECT DISTINCT lease FROM entries WHERE lease IS NOT NULL').all();
    await Promise.all(rows.map((row) => this.group.run(this.revokeJob(String(row['lease'])))));
  }

  private commitJob(
    { conditions, writes }: Transaction,
    leases: readonly (FileLease | undefined)[],
  ): Job<CommitResult> {
    let current: (Entry | undefined)[] | undefined;
    return {
      run: (revision) => {
        const found = conditions.map(({ key }) => this.entries.get(key));
        if (!conditions.every((condition, at) => holds(condition, found[at]))) {
          current = found;
          return [];
        }
        if (leases.some((lease) => lease?.lives() === false)) throw leaseLost();
        return writes.flatMap((write) => this.apply(write, revision));
      },
      done: (revision) => (current ? { committed: false, revision, current } : { committed: true, revision }),
      bytes: writes.reduce((sum, write) => sum + (write.kind === 'put' ? write.value.length : 0), 0),
    };
  }

  private revokeJob(id: string): Job<void> {
    return {
      run: (revision) =>
        this.entries.keysUnder(id).flatMap((key) => this.apply({ kind: 'delete', key }, revision)),
      done: () => undefined,
      bytes: 0,
    };
  }

  private apply(write: Write, revision: number): Change[] {
    const previous = this.entries.get(write.key);
    if (write.kind === 'delete') {
      if (previous === undefined) return [];
      this.entries.delete(write.key);
      return [{ kind: 'delete', key: write.key, previous }];
    }
    const { key, value } = write;
    const entry = { key, value, createRevision: previous?.createRevision ?? revision, modRevision: revision };
    this.entries.put(entry, write.lease?.id);
    return [{ kind: 'put', entry, previous }];
  }

  private leaseOf(write: Write): FileLease | undefined {
    if (write.kind === 'delete' || write.lease === undefined) return undefined;
    if (write.lease.lost.aborted) throw leaseLost();
    const lease = this.leases.get(write.lease.id);
    if (lease === undefined) throw new StoreError('invalid', 'The lease was not granted by this store.');
    return lease;
  }

  private read<T>(task: () => T): Promise<T> {
    return new Promise((resolve) => {
      this.assertOpen();
      try {
        resolve(task());
      } catch (error) {
        throw workError(error);
      }
    });
  }

  private assertOpen(): void {
    if (this.closed) throw new StoreError('closed', 'The store was closed.');
  }
}

function holds(condition: Condition, entry: Entry | undefined): boolean {
  if ('modRevision' in condition) return (entry?.modRevision ?? 0) === condition.modRevision;
  return (entry?.createRevision ?? 0) === condition.createRevision;
}

function leaseLost(): StoreError {
  return new StoreError('lease-lost', 'The lease that the write names no longer lives.');
}
