import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CountWindow } from './count-window.js';
import { TimeWindow } from './time-window.js';

describe('a window by time', () => {
  test('forgets everything after an idle gap longer than itself', () => {
    const window = new TimeWindow(10_000);
    for (let call = 0; call < 9; call += 1) window.record(true, 500);
    expect(window.bad(3_600_000)).toBe(0);
    expect(window.calls(3_600_000)).toBe(0);
  });

  test('forgets only the buckets that left after a shorter gap', () => {
    const window = new TimeWindow(10_000);
    window.record(true, 0);
    window.record(false, 5000);
    expect(window.calls(9999)).toBe(2);
    expect(window.calls(10_000)).toBe(1);
    expect(window.bad(10_000)).toBe(0);
    expect(window.calls(15_000)).toBe(0);
  });

  test('counts while the clock stands still, and when it goes back', () => {
    const window = new TimeWindow(1000);
    for (let call = 0; call < 1000; call += 1) window.record(call % 2 === 0, 700);
    window.record(true, 100);
    expect(window.calls(700)).toBe(1001);
    expect(window.bad(700)).toBe(501);
  });

  test('takes back the newest, and nothing that is not there', () => {
    const window = new TimeWindow(1000);
    window.record(false, 0);
    window.takeBack(500);
    window.takeBack(500);
    expect(window.calls(500)).toBe(0);
    window.record(false, 600);
    expect(window.calls(600)).toBe(1);
  });

  test('agrees with a naive list at any rate, gap and length', () => {
    const step = fc.record({
      gapMs: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 0, max: 50 }),
        fc.double({ min: 0, max: 5000, noNaN: true }),
      ),
      bad: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 200 }),
        fc.integer({ min: 1, max: 20 }),
        fc.constantFrom(100, 1000, 10_000),
        (steps, buckets, lengthMs) => {
          const window = new TimeWindow(lengthMs, buckets);
          const bucketMs = lengthMs / buckets;
          const seen: { bucket: number; bad: boolean }[] = [];
          let nowMs = 0;
          for (const { gapMs, bad } of steps) {
            nowMs += gapMs;
            window.record(bad, nowMs);
            seen.push({ bucket: Math.floor(nowMs / bucketMs), bad });
            const first = Math.floor(nowMs / bucketMs) - buckets + 1;
            const held = seen.filter((outcome) => outcome.bucket >= first);
            expect(window.calls(nowMs)).toBe(held.length);
            expect(window.bad(nowMs)).toBe(held.filter((outcome) => outcome.bad).length);
          }
        },
      ),
      { numRuns: 400 },
    );
  });
});

describe('a window by count', () => {
  test('agrees with the tail of a naive list', () => {
    fc.assert(
      fc.property(
        fc.array(fc.boolean(), { maxLength: 200 }),
        fc.integer({ min: 1, max: 40 }),
        (outcomes, length) => {
          const window = new CountWindow(length);
          outcomes.forEach((bad, index) => {
            window.record(bad, 0);
            const held = outcomes.slice(0, index + 1).slice(-length);
            expect(window.calls(0)).toBe(held.length);
            expect(window.bad(0)).toBe(held.filter(Boolean).length);
          });
        },
      ),
      { numRuns: 400 },
    );
  });
});
