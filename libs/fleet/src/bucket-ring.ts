/** Amounts of one moment or span: three counters that live together. */
export interface Amounts {
  successes: number;
  failures: number;
  /** Or rejected calls: the third counter of a ring means what its owner says. */
  third: number;
}

const CHANNELS = 3;

/**
 * Counts over the recent past in buckets of equal length, in one typed array. Time is a parameter and may stand still or
 * jump any distance ahead. Amounts of a span are spread evenly over it, so buckets hold fractions; a window is cut at its
 * exact length by taking the part of its oldest bucket.
 */
export class BucketRing {
  private readonly cells: Float32Array;
  /** Number of the newest bucket since time zero; -1 = nothing was ever added. */
  private head = -1;

  constructor(
    private readonly bucketMs: number,
    private readonly buckets: number,
  ) {
    this.cells = new Float32Array(buckets * CHANNELS);
  }

  /** Spreads the amounts over [fromMs, toMs]; equal ends are one moment. What is older than the ring is dropped. */
  add(fromMs: number, toMs: number, amounts: Amounts): void {
    const first = Math.floor(fromMs / this.bucketMs);
    const last = Math.max(first, Math.ceil(toMs / this.bucketMs) - 1);
    this.advance(last);
    if (fromMs >= toMs || first === last) {
      if (first > this.head - this.buckets) this.put(first, 1, amounts);
      return;
    }
    const perMs = 1 / (toMs - fromMs);
    const whole = this.bucketMs * perMs;
    const lowest = Math.max(first, this.head - this.buckets + 1, 0);
    for (let bucket = lowest; bucket <= last; bucket += 1) {
      let part = whole;
      if (bucket === first) part = ((bucket + 1) * this.bucketMs - fromMs) * perMs;
      else if (bucket === last) part = (toMs - bucket * this.bucketMs) * perMs;
      this.put(bucket, part, amounts);
    }
  }

  /** What lies in the `windowMs` before `nowMs`, added to `sum`. */
  sum(windowMs: number, nowMs: number, sum: Amounts): void {
    if (this.head < 0) return;
    const { cells, buckets, head } = this;
    const fromBucket = (nowMs - windowMs) / this.bucketMs;
    const oldest = Math.floor(fromBucket);
    const whole = Math.max(oldest + 1, head - buckets + 1, 0);
    let [successes, failures, third] = [0, 0, 0];
    let cell = (head % buckets) * CHANNELS;
    for (let bucket = head; bucket >= whole; bucket -= 1) {
      successes += cells[cell] ?? 0;
      failures += cells[cell + 1] ?? 0;
      third += cells[cell + 2] ?? 0;
      cell = cell === 0 ? (buckets - 1) * CHANNELS : cell - CHANNELS;
    }
    if (oldest >= 0 && oldest <= head && oldest > head - buckets) {
      const part = oldest + 1 - fromBucket;
      const cut = (oldest % buckets) * CHANNELS;
      successes += part * (cells[cut] ?? 0);
      failures += part * (cells[cut + 1] ?? 0);
      third += part * (cells[cut + 2] ?? 0);
    }
    sum.successes += successes;
    sum.failures += failures;
    sum.third += third;
  }

  private put(bucket: number, part: number, amounts: Amounts): void {
    const { cells } = this;
    const cell = (bucket % this.buckets) * CHANNELS;
    cells[cell] = (cells[cell] ?? 0) + part * amounts.successes;
    cells[cell + 1] = (cells[cell + 1] ?? 0) + part * amounts.failures;
    cells[cell + 2] = (cells[cell + 2] ?? 0) + part * amounts.third;
  }

  /** Empties what the ring reuses for the buckets after the head. */
  private advance(bucket: number): void {
    if (bucket <= this.head) return;
    const { cells, buckets } = this;
    const from = this.head < 0 ? bucket : Math.max(this.head + 1, bucket - buckets + 1);
    const start = (from % buckets) * CHANNELS;
    const end = start + (bucket - from + 1) * CHANNELS;
    cells.fill(0, start, end);
    if (end > cells.length) cells.fill(0, 0, end - cells.length);
    this.head = bucket;
  }
}
