import { StoreError } from '../store-error.js';
import type { Lease } from '../store.js';

export interface FileLeaseOptions {
  readonly id: string;
  readonly ttlMs: number;
  readonly nowMs: () => number;
  /** Deletes the lease's keys. */
  readonly revoke: (id: string) => Promise<void>;
  readonly forget: (id: string) => void;
}

/**
 * A lease of the embedded store. Holder and store are one process, so it lives as long as the process gets to run: a pause
 * longer than the time to live is its only way to lapse.
 */
export class FileLease implements Lease {
  readonly id: string;
  readonly lost: AbortSignal;
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private deadlineMs: number;
  private revoked: Promise<void> | undefined;

  constructor(private readonly options: FileLeaseOptions) {
    this.id = options.id;
    this.lost = this.controller.signal;
    this.deadlineMs = options.nowMs() + options.ttlMs;
    this.timer = setInterval(() => this.keepAlive(), options.ttlMs / 4).unref();
  }

  /** Whether a write may be made under it now; a lease that lapsed unnoticed lapses here. */
  lives(): boolean {
    if (!this.lost.aborted && this.options.nowMs() >= this.deadlineMs) this.lapse();
    return !this.lost.aborted;
  }

  async release(): Promise<void> {
    this.end(new StoreError('closed', 'The lease was given back.'));
    await this.revoked;
  }

  private keepAlive(): void {
    if (this.lives()) this.deadlineMs = this.options.nowMs() + this.options.ttlMs;
  }

  private lapse(): void {
    const message = `The process stood still for longer than the lease's ${this.options.ttlMs} ms.`;
    this.end(new StoreError('lease-lost', message));
  }

  private end(why: StoreError): void {
    if (this.lost.aborted) return;
    clearInterval(this.timer);
    this.options.forget(this.id);
    this.controller.abort(why);
    this.revoked = this.options.revoke(this.id);
    // Whoever releases gets the failure; keys of an unreleased lease go when the store opens again at the latest.
    this.revoked.catch(() => undefined);
  }
}
