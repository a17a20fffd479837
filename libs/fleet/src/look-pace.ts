/** On average one look in this time: fifty a second. */
const GAP_MS = 20;
/** After a pause so many may follow at once: the reports of a fleet that fails come in a burst. */
const BURST = 10;

/** How often the rules of one key are looked at, as a bucket of looks that fills with time. */
export class LookPace {
  /** When the bucket would be full. */
  private fullMs = -Infinity;

  /** The earliest time of the next look. */
  allowedMs(nowMs: number): number {
    return Math.max(nowMs, this.fullMs - (BURST - 1) * GAP_MS);
  }

  looked(nowMs: number): void {
    this.fullMs = Math.max(this.fullMs, nowMs) + GAP_MS;
  }
}
