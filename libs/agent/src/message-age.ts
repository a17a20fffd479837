/** Clocks drift by up to about a tenth of a millisecond in a second: older comparisons are let go. */
const WINDOW_MS = 300_000;

/**
 * How late messages of one stream are read. The two clocks have nothing in common but their pace, so the least difference
 * seen lately stands for a message that was read at once; what a message has more than that, it waited: in a
 * socket's buffer while this process was paused, above all.
 */
export class MessageAge {
  #windowMs = -Infinity;
  #least = Infinity;
  #former = Infinity;

  /** A new stream: another replica has another clock. */
  reset(): void {
    this.#windowMs = -Infinity;
    this.#least = Infinity;
    this.#former = Infinity;
  }

  /** Milliseconds the message waited beyond the quickest one; 0 for the first, and where the sender said nothing. */
  lateMs(senderMs: number | undefined, nowMs: number): number {
    if (senderMs === undefined || !Number.isFinite(senderMs)) return 0;
    if (nowMs - this.#windowMs >= WINDOW_MS) {
      this.#former = nowMs - this.#windowMs >= 2 * WINDOW_MS ? Infinity : this.#least;
      this.#least = Infinity;
      this.#windowMs = nowMs;
    }
    const difference = nowMs - senderMs;
    this.#least = Math.min(this.#least, difference);
    return difference - Math.min(this.#least, this.#former);
  }
}
