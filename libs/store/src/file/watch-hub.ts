import { StoreError } from '../store-error.js';
import type { ChangeBatch, WatchOptions } from '../store.js';
import { checkPrefix, checkRevision } from '../bounds.js';
import type { HistoryTable } from './history-table.js';

/** A watcher that has read everything and waits for the next change under its prefix. */
interface Idle {
  readonly prefix: string;
  /** Raised while changes elsewhere pass by, so that a quiet watcher is never left behind by compaction. */
  caughtUpTo: number;
  readonly wake: () => void;
}

/** Feeds watches from the history table: a watcher holds one page at most, however slow it is. */
export class WatchHub {
  private readonly idle = new Set<Idle>();
  private closed = false;

  constructor(private readonly history: HistoryTable) {}

  /** To be called after each durable transaction with the keys it changed. */
  publish(keys: readonly string[]): void {
    for (const each of [...this.idle]) {
      if (keys.some((key) => key.startsWith(each.prefix))) each.wake();
      else each.caughtUpTo = this.history.revision;
    }
  }

  close(): void {
    this.closed = true;
    for (const each of [...this.idle]) each.wake();
  }

  async *watch(
    prefix: string,
    { afterRevision, signal }: WatchOptions,
  ): AsyncGenerator<ChangeBatch, void, undefined> {
    checkPrefix(prefix);
    checkRevision('afterRevision', afterRevision);
    let cursor = afterRevision;
    while (!signal.aborted) {
      if (this.closed) throw new StoreError('closed', 'The store was closed.');
      const { batches, readTo } = this.history.read(prefix, cursor);
      for (const batch of batches) {
        yield batch;
        if (signal.aborted) return;
      }
      cursor = await this.changed({ prefix, cursor: readTo, signal });
    }
  }

  /** Resolves once something under the prefix may have changed after `cursor`; answers where to read on. */
  private changed(from: { prefix: string; cursor: number; signal: AbortSignal }): Promise<number> {
    const { prefix, cursor, signal } = from;
    if (this.history.revision > cursor || signal.aborted || this.closed) return Promise.resolve(cursor);
    return new Promise((resolve) => {
      const idle: Idle = {
        prefix,
        caughtUpTo: cursor,
        wake: () => {
          this.idle.delete(idle);
          signal.removeEventListener('abort', idle.wake);
          resolve(idle.caughtUpTo);
        },
      };
      this.idle.add(idle);
      signal.addEventListener('abort', idle.wake);
    });
  }
}
