import { BucketRing, type Amounts } from './bucket-ring.js';

/** Sharp buckets for windows up to this long, coarse ones above. */
const FINE_SPAN_MS = 1000;
const FINE_BUCKET_MS = 25;
const COARSE_BUCKETS = 40;

/** Outcomes of one agent under the rule in force that may be judged: fine for the last second, coarse for the window. */
export class JudgedCounts {
  private readonly fine = new BucketRing(FINE_BUCKET_MS, FINE_SPAN_MS / FINE_BUCKET_MS + 1);
  private readonly coarse: BucketRing | undefined;

  /** `windowMs`: the longest window that is ever asked for. */
  constructor(windowMs: number) {
    this.coarse =
      windowMs > FINE_SPAN_MS ? new BucketRing(windowMs / COARSE_BUCKETS, COARSE_BUCKETS + 1) : undefined;
  }

  add(fromMs: number, toMs: number, amounts: Amounts): void {
    this.fine.add(fromMs, toMs, amounts);
    this.coarse?.add(fromMs, toMs, amounts);
  }

  /** Sets `into` to the counts of the window that ends now; `third` is the slow ones. */
  sum(windowMs: number, nowMs: number, into: Amounts): void {
    into.successes = 0;
    into.failures = 0;
    into.third = 0;
    (windowMs > FINE_SPAN_MS ? this.coarse : this.fine)?.sum(windowMs, nowMs, into);
  }
}
