import { describe, expect, test } from 'vitest';
import type { AgentEntry } from './agent-roster.js';
import { AgentSeries } from './agent-series.js';
import { judgedWindows, judgeRate, type RateCase, wilsonLower } from './rate-rule.js';

const NOW_MS = 100_000;

/** Agents with these outcomes, spread evenly over the last `overMs`. */
function fleet(
  outcomes: readonly { successes: number; failures: number; slow?: number }[],
  overMs = 10_000,
): AgentSeries[] {
  return outcomes.map(({ successes, failures, slow = 0 }, index) => {
    const identity = { id: String(index), incarnation: 'i', namespace: 'n', service: 's', labels: {} };
    const agent: AgentEntry = {
      identity,
      up: true,
      downMs: 0,
      sequence: 0,
      reportedMs: 0,
      sinceBirth: true,
      series: new Set(),
    };
    const series = new AgentSeries(agent, 10_000, () => undefined);
    series.judged.add(NOW_MS - overMs, NOW_MS, { successes, failures, third: slow });
    return series;
  });
}

function judge(series: AgentSeries[], parts: Partial<RateCase> = {}) {
  return judgeRate(series, {
    rule: { ratio: 0.5, minimumCalls: 20, window: { ms: 10_000 } },
    reason: 'failure-rate',
    quorum: { instances: 2, share: 0.2 },
    present: series.length,
    tellsLocalised: true,
    nowMs: NOW_MS,
    observedFromMs: 0,
    ...parts,
  });
}

const same = (agents: number, successes: number, failures: number) =>
  Array.from({ length: agents }, () => ({ successes, failures }));

describe('a rate over the fleet', () => {
  test('the window and its halves down to a quarter second', () => {
    expect(judgedWindows(10_000)).toEqual([10_000, 5_000, 2_500, 1_250, 625, 312.5]);
    expect(judgedWindows(400)).toEqual([400]);
  });

  test('trips at exactly the ratio and the minimum, both of the whole fleet', () => {
    expect(judge(fleet(same(10, 1, 1))).kind).toBe('trips');
    expect(judge(fleet(same(10, 1.1, 0.9))).kind).toBe('calm');
  });

  test('C155: below the minimum it says how far', () => {
    expect(judge(fleet([{ successes: 0, failures: 3 }]))).toEqual({
      kind: 'calm',
      note: 'below minimumCalls: 3 of 20',
    });
  });

  test('C153: no calls at all are no ratio and nothing to say', () => {
    expect(judge(fleet(same(5, 0, 0)))).toEqual({ kind: 'calm', note: undefined });
    expect(judge([])).toEqual({ kind: 'calm', note: undefined });
  });

  test('a window that is not yet filled needs five times the calls and a clear lower bound', () => {
    const young = { observedFromMs: NOW_MS - 5_000 };
    expect(judge(fleet(same(10, 1, 1), 5_000), young).kind).toBe('calm');
    expect(judge(fleet(same(10, 1, 9), 5_000), young).kind).toBe('trips');
    expect(judge(fleet(same(10, 0, 9), 5_000), young).kind).toBe('calm');
  });

  test('a dead dependency is found by a short window though the long one is full of successes', () => {
    const series = fleet(same(20, 0, 0));
    for (const { judged } of series) {
      judged.add(NOW_MS - 10_000, NOW_MS - 300, { successes: 194, failures: 0, third: 0 });
      judged.add(NOW_MS - 300, NOW_MS, { successes: 0, failures: 6, third: 0 });
    }
    const word = judge(series);
    expect(word).toMatchObject({ kind: 'trips', reason: 'failure-rate' });
  });

  test('C089: one broken agent with ten times the traffic of the others is localised', () => {
    const word = judge(fleet([{ successes: 0, failures: 1_000 }, ...same(9, 100, 0)]));
    expect(word.kind).toBe('calm');
    const few = judge(fleet([{ successes: 0, failures: 1_000 }, ...same(1, 9, 1), ...same(1, 0, 0)]));
    expect(few.kind).toBe('localised');
  });

  test('one broken agent of fifty with two thirds of all calls counts for twice the median', () => {
    expect(judge(fleet([{ successes: 0, failures: 1_000 }, ...same(49, 10, 0)])).kind).toBe('calm');
  });

  test('the share of the quorum is of the agents with an outcome in the window', () => {
    const quorum = { instances: 2, share: 0.6 };
    expect(judge(fleet([...same(5, 0, 10), ...same(5, 9, 1)]), { quorum }).kind).toBe('localised');
    expect(judge(fleet([...same(6, 0, 10), ...same(4, 9, 1)]), { quorum }).kind).toBe('trips');
  });

  test('a sole agent is its own quorum, but not while another was there lately', () => {
    const sole = fleet([{ successes: 0, failures: 40 }]);
    expect(judge(sole, { present: 1 }).kind).toBe('trips');
    expect(judge(sole, { present: 2 }).kind).toBe('localised');
  });

  test('slow calls are judged by the slow rule only', () => {
    const slow = fleet([
      { successes: 20, failures: 0, slow: 17 },
      { successes: 20, failures: 0, slow: 17 },
    ]);
    const rule = { ratio: 0.8, minimumCalls: 20, window: { ms: 10_000 } } as const;
    expect(judge(slow).kind).toBe('calm');
    expect(judge(slow, { rule, reason: 'slow-rate' })).toMatchObject({ kind: 'trips', reason: 'slow-rate' });
  });

  test('agents that are gone are in neither side of the ratio', () => {
    const series = fleet([...same(2, 0, 20), ...same(2, 20, 0)]);
    for (const one of series.slice(0, 2)) one.agent.up = false;
    expect(judge(series).kind).toBe('calm');
  });
});

describe('the lower bound', () => {
  test('is that of Wilson', () => {
    expect(wilsonLower(0, 0, 6)).toBe(0);
    expect(wilsonLower(36, 36, 6)).toBeCloseTo(0.5, 6);
    expect(wilsonLower(50, 100, 1.96)).toBeCloseTo(0.404, 3);
    expect(wilsonLower(77, 125, 6)).toBeLessThan(0.5);
    expect(wilsonLower(97, 125, 6)).toBeGreaterThan(0.5);
  });
});
