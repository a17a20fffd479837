/** What a rule counts over: how many calls ended, and how many of them badly. */
export interface OutcomeWindow {
  /** Counts one outcome that ended at `nowMs`. */
  record(bad: boolean, nowMs: number): void;
  /** Outcomes in the window at `nowMs`. */
  calls(nowMs: number): number;
  /** Bad ones among them. */
  bad(nowMs: number): number;
  /** `calls` as of the last question or record. */
  readonly callsHeld: number;
  /** `bad` as of the last question or record. */
  readonly badHeld: number;
}

/**
 * Outcomes of the last `lengthMs`, in a ring of buckets: constant memory at any rate, O(1) a call.
 * The oldest bucket leaves whole, so that the window covers between (buckets − 1) / buckets and all of its length.
 * Any idle gap is right, and so is a clock that stands still; one that went back counts into the present bucket.
 */
export class TimeWindow implements OutcomeWindow {
  private readonly bucketMs: number;
  private readonly callsIn: number[];
  private readonly badIn: number[];
  callsHeld = 0;
  badHeld = 0;
  /** Ordinal of the newest bucket: time ÷ bucketMs; -1 = nothing was ever asked. */
  private newest = -1;
  private newestEndsMs = 0;
  /** Of the newest bucket. */
  private index = 0;

  constructor(lengthMs: number, buckets = 10) {
    this.bucketMs = lengthMs / buckets;
    this.callsIn = new Array<number>(buckets).fill(0);
    this.badIn = new Array<number>(buckets).fill(0);
  }

  record(bad: boolean, nowMs: number): void {
    if (nowMs >= this.newestEndsMs) this.moveTo(nowMs);
    const { index } = this;
    this.callsIn[index] = (this.callsIn[index] ?? 0) + 1;
    this.callsHeld += 1;
    if (!bad) return;
    this.badIn[index] = (this.badIn[index] ?? 0) + 1;
    this.badHeld += 1;
  }

  calls(nowMs: number): number {
    this.moveTo(nowMs);
    return this.callsHeld;
  }

  bad(nowMs: number): number {
    this.moveTo(nowMs);
    return this.badHeld;
  }

  /** Takes back the newest good outcome; one that has left the window already is gone by itself. */
  takeBack(nowMs: number): void {
    this.moveTo(nowMs);
    const buckets = this.callsIn.length;
    for (let age = 0; age < buckets && age <= this.newest; age += 1) {
      const index = (this.newest - age) % buckets;
      const calls = this.callsIn[index] ?? 0;
      if (calls <= (this.badIn[index] ?? 0)) continue;
      this.callsIn[index] = calls - 1;
      this.callsHeld -= 1;
      return;
    }
  }

  private moveTo(nowMs: number): void {
    if (nowMs < this.newestEndsMs) return;
    const ordinal = Math.floor(nowMs / this.bucketMs);
    if (ordinal <= this.newest) return;
    const steps = Math.min(ordinal - this.newest, this.callsIn.length);
    for (let step = 1; step <= steps; step += 1) {
      const index = (ordinal - steps + step) % this.callsIn.length;
      this.callsHeld -= this.callsIn[index] ?? 0;
      this.badHeld -= this.badIn[index] ?? 0;
      this.callsIn[index] = 0;
      this.badIn[index] = 0;
    }
    this.newest = ordinal;
    this.index = ordinal % this.callsIn.length;
    this.newestEndsMs = (ordinal + 1) * this.bucketMs;
  }
}
