import type { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../store-error.js';
import type { Change } from '../store.js';
import { syncError, workError } from './file-errors.js';
import type { HistoryTable } from './history-table.js';

/** A piece of work to do at a revision of its own. It changes the tables itself, and all or nothing of them. */
export interface Job<Result> {
  /** `revision` is the one its changes get. Throws a StoreError when it changed nothing and must fail. */
  readonly run: (revision: number) => readonly Change[];
  /** The job's answer once its changes are durable; `revision` is the store's then, or the job's own if it changed something. */
  readonly done: (revision: number) => Result;
  /** Roughly what it writes, to bound a group. */
  readonly bytes: number;
}

interface Waiting {
  readonly job: Job<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: StoreError) => void;
}

type Outcome =
  | { readonly waiting: Waiting; readonly ok: true; readonly answer: unknown }
  | { readonly waiting: Waiting; readonly ok: false; readonly error: StoreError };

const groupJobsMax = 256;
const groupBytesMax = 8 * 1024 * 1024;

/**
 * Runs jobs in the order in which they came. Those that wait in the same turn of the event loop share one transaction and one
 * sync; each sees what those before it did, has its own revision, and is answered after the sync only.
 */
export class GroupCommit {
  private waiting: Waiting[] = [];
  private scheduled = false;

  constructor(
    private readonly database: DatabaseSync,
    private readonly history: HistoryTable,
    private readonly published: (keys: readonly string[]) => void,
  ) {}

  run<Result>(job: Job<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.waiting.push({ job, resolve: resolve as (result: unknown) => void, reject });
      this.schedule();
    });
  }

  /** Runs all that waits, now. */
  drain(): void {
    while (this.waiting.length > 0) this.runGroup();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.runGroup();
      if (this.waiting.length > 0) this.schedule();
    });
  }

  private runGroup(): void {
    const group = this.takeGroup();
    if (group.length === 0) return;
    let outcomes: Outcome[];
    let settle: () => void;
    const changed: Change[] = [];
    try {
      this.database.exec('BEGIN IMMEDIATE');
      ({ outcomes, settle } = this.runAll(group, changed));
    } catch (error) {
      return this.abandon(group, workError(error));
    }
    try {
      this.database.exec('COMMIT');
    } catch (error) {
      return this.abandon(group, syncError(error));
    }
    settle();
    for (const outcome of outcomes) {
      if (outcome.ok) outcome.waiting.resolve(outcome.answer);
      else outcome.waiting.reject(outcome.error);
    }
    if (changed.length > 0) this.published(changed.map(keyOf));
  }

  private runAll(group: readonly Waiting[], changed: Change[]): { outcomes: Outcome[]; settle: () => void } {
    let revision = this.history.revision;
    const added: { revision: number; bytes: number }[] = [];
    const outcomes = group.map((waiting): Outcome => {
      try {
        const changes = waiting.job.run(revision + 1);
        if (changes.length > 0) {
          revision += 1;
          added.push({ revision, bytes: this.history.add(revision, changes) });
          changed.push(...changes);
        }
        return { waiting, ok: true, answer: waiting.job.done(revision) };
      } catch (error) {
        // Any other failure leaves the transaction in doubt: the whole group is rolled back.
        if (error instanceof StoreError) return { waiting, ok: false, error };
        throw error;
      }
    });
    const settle = added.length > 0 ? this.history.finish(added) : () => undefined;
    return { outcomes, settle };
  }

  private abandon(group: readonly Waiting[], error: StoreError): void {
    if (this.database.isTransaction) this.database.exec('ROLLBACK');
    for (const waiting of group) waiting.reject(error);
  }

  private takeGroup(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { job } of this.waiting) {
      bytes += job.bytes;
      if (count > 0 && (bytes > groupBytesMax || count === groupJobsMax)) break;
      count += 1;
    }
    return this.waiting.splice(0, count);
  }
}

function keyOf(change: Change): string {
  return change.kind === 'put' ? change.entry.key : change.key;
}
