import type { BreakerKey, StoredVerdict } from '@bulwark/fleet';
import { StoreError, type Condition, type Store, type Write } from '@bulwark/store';
import { keyId, verdictKey } from './breaker-name.js';

type Job =
  | {
      readonly kind: 'write';
      readonly key: BreakerKey;
      readonly verdict: StoredVerdict;
      readonly value: string;
    }
  | { readonly kind: 'remove'; readonly key: BreakerKey };

export interface VerdictWriterOptions {
  readonly store: Store;
  readonly claim: { readonly key: string; readonly createRevision: number };
  /** Aborts when the claim is lost: what is not written then never will be. */
  readonly signal: AbortSignal;
  /** Mod revisions of the verdicts found in the store at the start, by store key. */
  readonly found: ReadonlyMap<string, number>;
  written(verdict: StoredVerdict): void;
  removed(key: BreakerKey): void;
  /** The store says that somebody else decides now. */
  fenced(): void;
}

/** Two conditions fewer than the store takes: the claim's, and one to spare. */
const MAX_BATCH = 98;
const MAX_BATCH_BYTES = 768 * 1024;
const RETRY_MS = 100;

/**
 * Writes verdicts under the claim: each transaction compares the claim's create revision and every verdict's own
 * revision, so that a decider that lost its claim writes nothing. One transaction at a time; what gathers meanwhile
 * goes together in the next one, the newest verdict of each key.
 */
export class VerdictWriter {
  private readonly waiting = new Map<string, Job>();
  private readonly revisions: Map<string, number>;
  private working: Promise<void> | undefined;

  constructor(private readonly options: VerdictWriterOptions) {
    this.revisions = new Map(options.found);
  }

  write(verdict: StoredVerdict): void {
    this.add({ kind: 'write', key: verdict.key, verdict, value: JSON.stringify(verdict) });
  }

  remove(key: BreakerKey): void {
    this.add({ kind: 'remove', key });
  }

  /** Resolves when everything that was asked for is settled. */
  async idle(): Promise<void> {
    while (this.working !== undefined) await this.working;
  }

  private add(job: Job): void {
    const id = keyId(job.key);
    this.waiting.delete(id);
    this.waiting.set(id, job);
    this.working ??= this.work().finally(() => (this.working = undefined));
  }

  private async work(): Promise<void> {
    while (this.waiting.size > 0 && !this.options.signal.aborted) {
      // One turn of the loop lets the effects of the same instant gather.
      await Promise.resolve();
      const batch = this.take();
      const done = await this.commit(batch);
      if (!done) {
        for (const job of batch) if (!this.waiting.has(keyId(job.key))) this.waiting.set(keyId(job.key), job);
        await pause(this.options.signal);
      }
    }
  }

  private take(): Job[] {
    const batch: Job[] = [];
    let bytes = 0;
    for (const [id, job] of this.waiting) {
      bytes += job.kind === 'write' ? job.value.length * 2 : 0;
      if (batch.length > 0 && (batch.length >= MAX_BATCH || bytes > MAX_BATCH_BYTES)) break;
      this.waiting.delete(id);
      batch.push(job);
    }
    return batch;
  }

  /** @returns false when the same has to be tried again */
  private async commit(batch: readonly Job[]): Promise<boolean> {
    const { claim, store } = this.options;
    const conditions: Condition[] = [{ key: claim.key, createRevision: claim.createRevision }];
    const writes: Write[] = [];
    for (const job of batch) {
      const key = verdictKey(job.key);
      conditions.push({ key, modRevision: this.revisions.get(key) ?? 0 });
      writes.push(job.kind === 'write' ? { kind: 'put', key, value: job.value } : { kind: 'delete', key });
    }
    try {
      const result = await store.commit({ conditions, writes });
      if (this.options.signal.aborted) return true;
      if (result.committed) {
        this.settle(batch, result.revision);
        return true;
      }
      const [held, ...verdicts] = result.current;
      if (held?.createRevision !== claim.createRevision) {
        this.options.fenced();
        return true;
      }
      // The claim is ours, so nobody else wrote: an earlier commit of unknown outcome had happened after all.
      batch.forEach((job, index) =>
        this.revisions.set(verdictKey(job.key), verdicts[index]?.modRevision ?? 0),
      );
      return false;
    } catch (error) {
      if (error instanceof StoreError && (error.code === 'unavailable' || error.code === 'unknown-outcome'))
        return false;
      if (error instanceof StoreError && error.code === 'closed') return true;
      throw error;
    }
  }

  private settle(batch: readonly Job[], revision: number): void {
    for (const job of batch) {
      const key = verdictKey(job.key);
      if (job.kind === 'write') {
        this.revisions.set(key, revision);
        this.options.written(job.verdict);
      } else {
        this.revisions.delete(key);
        this.options.removed(job.key);
      }
    }
  }
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, RETRY_MS);
    signal.addEventListener('abort', done);
  });
}
