import { describe, expect, test } from 'vitest';
import { randomFailures } from '../sim/src/random-failures.js';

const HOUR_MS = 3_600_000;
const WINDOW_MS = 10_000;
const fleet = { agents: 20, callsPerSecond: 1_000, seed: 24 };

/** One hour of each here; all 24, and 200 agents, by `npm run sim`. */
describe('the rule "50 % of at least 20 calls in 10 s" at 1,000 calls/s that fail at random', () => {
  test.each([0.05, 0.2, 0.4])('%d of them fail for an hour: no trip', { timeout: 60_000 }, (failing) => {
    const outcome = randomFailures({ ...fleet, failing, forMs: HOUR_MS });
    expect(outcome.trippedMs).toBeUndefined();
    expect(outcome.reports).toBeGreaterThan(100_000);
  });

  test('60 % of them fail: a trip within two windows, from the start and in a healthy fleet', () => {
    const cold = randomFailures({ ...fleet, failing: 0.6, forMs: 60_000 });
    expect(cold.trippedMs).toBeLessThan(2 * WINDOW_MS);
    const then = { atMs: 60_000, failing: 0.6 };
    const warm = randomFailures({ ...fleet, failing: 0, then, forMs: 120_000 });
    expect(warm.trippedMs).toBeGreaterThan(then.atMs);
    expect(warm.trippedMs).toBeLessThan(then.atMs + 2 * WINDOW_MS);
  });
});
