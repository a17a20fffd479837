import { describe, expect, test } from 'vitest';
import { recoveryShares, suddenDeath } from '../sim/src/measures.js';
import { randomRun } from '../sim/src/random-run.js';
import { CONSECUTIVE, HALF } from '../sim/src/rules.js';

const RUNS = 1_000;

describe('simulated fleets', () => {
  test(`${RUNS} random fleets under random faults break no invariant`, { timeout: 60_000 }, () => {
    let trips = 0;
    for (let seed = 1; seed <= RUNS; seed += 1) {
      const { violations, trips: own } = randomRun(seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
      trips += own;
    }
    // A simulator that never trips proves nothing.
    expect(trips).toBeGreaterThan(RUNS / 2);
  });

  test('the same seed is the same run', () => {
    expect(randomRun(77)).toEqual(randomRun(77));
  });

  test.each([
    ['10 consecutive failures', CONSECUTIVE, 100, 50],
    ['50 % of at least 20 calls in 10 s', HALF, 600, 250],
  ])('20 agents at 20 calls/s whose dependency dies at once, %s', (_name, trip, reachMs, wasted) => {
    for (const seed of [1, 2, 3]) {
      const death = suddenDeath(trip, { agents: 20, callsPerSecond: 20, seed });
      expect(death.decidedMs).toBeLessThan(reachMs);
      expect(death.lastAgentMs).toBeLessThan(reachMs + 50);
      expect(death.wasted).toBeLessThanOrEqual(wasted);
      // One in each of the two cooldowns that pass meanwhile, by the dependency's log.
      expect(death.probes).toBe(2);
    }
  });

  test.each([
    [200, 0.5],
    [20, 20],
  ])('recovery of %d agents at %d calls/s admits each share within two points', (agents, callsPerSecond) => {
    const steps = recoveryShares(CONSECUTIVE, { agents, callsPerSecond, seed: 1 });
    expect(steps.map(({ share }) => share)).toEqual([0.1, 0.25, 0.5]);
    for (const { share, offered, admitted } of steps) {
      expect(Math.abs(admitted / offered - share)).toBeLessThanOrEqual(0.02);
    }
  });
});
