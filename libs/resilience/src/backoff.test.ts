import { seededRandom } from '@bulwark/testing';
import { expect, test } from 'vitest';
import { backoffMs, retryWaitMs } from './backoff.js';

const full = { baseMs: 100, maxMs: 2000, jitter: 'full' } as const;

test('C117: every wait lies in 0..max, also after 2,000 attempts', () => {
  for (let retry = 1; retry <= 2000; retry += 1) {
    const longest = backoffMs(retry, full, 0.999_999);
    expect(longest).toBeGreaterThan(0);
    expect(longest).toBeLessThanOrEqual(2000);
    expect(backoffMs(retry, full, 0)).toBe(0);
  }
  expect(backoffMs(2000, full, 1)).toBe(2000);
  expect(backoffMs(1e9, { ...full, maxMs: Number.MAX_SAFE_INTEGER }, 0.5)).toBeLessThan(Infinity);
});

test('S4.8: full jitter is uniform in 0..ceiling; 100 samples do not share one 0.1 s bin, a fixed delay does', () => {
  const random = seededRandom(8);
  const backoff = { baseMs: 1000, maxMs: 1000, jitter: 'full' } as const;
  const bins = new Set<number>();
  const fixed = new Set<number>();
  const tenths = new Array<number>(10).fill(0);
  for (let sample = 0; sample < 100; sample += 1) {
    const waitMs = backoffMs(1, backoff, random());
    bins.add(Math.floor(waitMs / 100));
    fixed.add(Math.floor(backoffMs(1, { ...backoff, jitter: 'none' }, random()) / 100));
  }
  for (let sample = 0; sample < 10_000; sample += 1) {
    const bin = Math.floor(backoffMs(1, backoff, random()) / 100);
    tenths[bin] = (tenths[bin] ?? 0) + 1;
  }
  expect(bins.size).toBeGreaterThan(5);
  expect(fixed.size).toBe(1);
  for (const held of tenths) expect(Math.abs(held - 1000)).toBeLessThan(130);
});

test('C121: Retry-After is a lower bound; negative and junk ones say nothing', () => {
  expect(retryWaitMs(300, 2000)).toBe(2000);
  expect(retryWaitMs(300, 0)).toBe(300);
  expect(retryWaitMs(300, -5000)).toBe(300);
  expect(retryWaitMs(300, NaN)).toBe(300);
  expect(retryWaitMs(300, Infinity)).toBe(300);
  expect(retryWaitMs(300, undefined)).toBe(300);
});
