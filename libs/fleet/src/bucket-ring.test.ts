import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BucketRing, type Amounts } from './bucket-ring.js';

const BUCKET_MS = 25;
const BUCKETS = 41;
const one: Amounts = { successes: 1, failures: 2, third: 3 };

function sumOf(ring: BucketRing, windowMs: number, nowMs: number): Amounts {
  const sum = { successes: 0, failures: 0, third: 0 };
  ring.sum(windowMs, nowMs, sum);
  return sum;
}

describe('a ring of buckets', () => {
  test('a moment counts once, whole, while the window holds it', () => {
    const ring = new BucketRing(BUCKET_MS, BUCKETS);
    ring.add(1_010, 1_010, one);
    expect(sumOf(ring, 1_000, 1_010)).toEqual(one);
    expect(sumOf(ring, 1_000, 2_000)).toEqual(one);
    expect(sumOf(ring, 1_000, 2_025)).toEqual({ successes: 0, failures: 0, third: 0 });
  });

  test('a span is spread evenly over its time', () => {
    const ring = new BucketRing(BUCKET_MS, BUCKETS);
    ring.add(1_000, 2_000, { successes: 100, failures: 0, third: 0 });
    expect(sumOf(ring, 250, 2_000).successes).toBeCloseTo(25, 3);
    expect(sumOf(ring, 333, 2_000).successes).toBeCloseTo(33.3, 3);
    expect(sumOf(ring, 1_000, 2_000).successes).toBeCloseTo(100, 3);
  });

  test.each([[30], [999], [1_025], [1_026], [10_000], [10_000_000]])(
    'survives an idle gap of %d ms',
    (gapMs) => {
      const ring = new BucketRing(BUCKET_MS, BUCKETS);
      ring.add(5_000, 5_000, one);
      const nowMs = 5_000 + gapMs;
      ring.add(nowMs, nowMs, one);
      expect(sumOf(ring, 1_000, nowMs).successes).toBe(gapMs < 1_000 ? 2 : 1);
    },
  );

  test('takes any number of counts while the clock stands still', () => {
    const ring = new BucketRing(BUCKET_MS, BUCKETS);
    for (let count = 0; count < 1_000; count += 1) ring.add(7_000, 7_000, one);
    expect(sumOf(ring, 250, 7_000)).toEqual({ successes: 1_000, failures: 2_000, third: 3_000 });
  });

  test('a span older than the ring is dropped', () => {
    const ring = new BucketRing(BUCKET_MS, BUCKETS);
    ring.add(9_000, 9_000, one);
    ring.add(1_000, 2_000, one);
    expect(sumOf(ring, 1_000, 9_000)).toEqual(one);
  });

  test('agrees with a plain list of spans', () => {
    const span = fc.record({
      stepMs: fc.integer({ min: 0, max: 1_500 }),
      lengthMs: fc.integer({ min: 0, max: 900 }),
      count: fc.integer({ min: 1, max: 50 }),
    });
    fc.assert(
      fc.property(
        fc.array(span, { maxLength: 30 }),
        fc.integer({ min: 250, max: 1_000 }),
        (spans, windowMs) => {
          const ring = new BucketRing(BUCKET_MS, BUCKETS);
          const list: { from: number; to: number; count: number }[] = [];
          let nowMs = 10_000;
          for (const { stepMs, lengthMs, count } of spans) {
            nowMs += stepMs;
            ring.add(nowMs - lengthMs, nowMs, { successes: count, failures: 0, third: 0 });
            list.push({ from: nowMs - lengthMs, to: nowMs, count });
            const from = nowMs - windowMs;
            const exact = list.reduce((sum, one) => sum + one.count * partAfter(one, from), 0);
            // A moment, and the cut through the oldest bucket, are known to one bucket only.
            const near = list
              .filter((one) => one.to >= from - BUCKET_MS && one.from <= from + BUCKET_MS)
              .reduce(
                (sum, one) => sum + one.count * Math.min(1, (2 * BUCKET_MS) / Math.max(1, one.to - one.from)),
                0,
              );
            expect(Math.abs(sumOf(ring, windowMs, nowMs).successes - exact)).toBeLessThanOrEqual(near + 0.01);
          }
        },
      ),
    );
  });
});

function partAfter(span: { from: number; to: number }, from: number): number {
  if (span.from >= from) return 1;
  return span.to <= from ? 0 : (span.to - from) / (span.to - span.from);
}
