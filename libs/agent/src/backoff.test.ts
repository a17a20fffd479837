import { describe, expect, it } from 'vitest';
import { Backoff } from './backoff.js';

describe('the wait before the next try', () => {
  it('doubles its bound to the maximum and starts again after a reset', () => {
    const backoff = new Backoff({ baseMs: 200, maxMs: 10_000, random: () => 0.5 });
    const waits = Array.from({ length: 8 }, () => backoff.nextMs());
    expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    backoff.reset();
    expect(backoff.nextMs()).toBe(100);
  });

  it('is long after a refusal, yet bounded', () => {
    const backoff = new Backoff({ baseMs: 200, maxMs: 10_000, random: () => 0 });
    const waits = Array.from({ length: 5 }, () => backoff.nextAfterRefusalMs());
    expect(waits).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
  });
});
