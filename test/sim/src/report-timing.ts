import type { EventQueue } from './event-queue.js';

/** At once on a failure, but never more often than this; about once a second when there is anything else to tell. */
const URGENT_GAP_MS = 20;
const CALM_MS = 1_000;

/** When a simulated agent reports: the protocol of fleet.proto. */
export class ReportTiming {
  private sequence = 0;
  private lastMs = -Infinity;
  private coveredToMs: number | undefined;
  private dueMs = Infinity;

  /** `emit` sends the counters of this moment. */
  constructor(
    private readonly queue: EventQueue,
    private readonly uniform: () => number,
    private readonly emit: (report: { sequence: number; coversMs: number; pollId: number }) => void,
  ) {}

  changed(): void {
    this.coveredToMs ??= this.queue.nowMs;
    if (this.dueMs === Infinity) this.schedule(this.lastMs + CALM_MS * (0.9 + 0.2 * this.uniform()));
  }

  urgent(): void {
    this.coveredToMs ??= this.queue.nowMs;
    this.schedule(this.lastMs + URGENT_GAP_MS);
  }

  /** Answers a poll, or tells a new connection everything. */
  now(pollId: number): void {
    this.send(pollId);
  }

  /** Reports of the last moments may be lost with the connection. */
  disconnected(): void {
    this.coveredToMs = Math.min(this.coveredToMs ?? Infinity, this.queue.nowMs - 5_000);
  }

  private schedule(atMs: number): void {
    const dueMs = Math.max(this.queue.nowMs, atMs);
    if (dueMs >= this.dueMs) return;
    this.dueMs = dueMs;
    this.queue.after(dueMs - this.queue.nowMs, () => {
      if (this.dueMs === dueMs) this.send(0);
    });
  }

  private send(pollId: number): void {
    const { nowMs } = this.queue;
    this.sequence += 1;
    const coversMs = Math.max(1, Math.ceil(nowMs - (this.coveredToMs ?? nowMs)));
    // Exact: the real reporter leaves its marks when it answers a poll, and covers the same span once more.
    this.coveredToMs = undefined;
    this.lastMs = nowMs;
    this.dueMs = Infinity;
    this.emit({ sequence: this.sequence, coversMs, pollId });
  }
}
