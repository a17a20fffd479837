import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AgentEntry } from './agent-roster.js';
import { AgentSeries, type Placement } from './agent-series.js';
import type { KeyCounts } from './contract.js';
import { KEY } from './decider.fixture.js';

function entry(): AgentEntry {
  const identity = { id: 'a', incarnation: 'i', namespace: 'n', service: 's', labels: {} };
  return { identity, up: true, downMs: 0, sequence: 0, reportedMs: 0, sinceBirth: true, series: new Set() };
}

function seriesOf(): AgentSeries {
  return new AgentSeries(entry(), 10_000, () => undefined);
}

function counts(parts: Partial<KeyCounts> = {}): KeyCounts {
  return {
    key: KEY,
    rule: 'r',
    successes: 0,
    failures: 0,
    slow: 0,
    ignored: 0,
    rejected: 0,
    runFailures: 0,
    runFirstFailureAgeMs: 0,
    successesSinceFailure: 0,
    lastSuccessAgeMs: undefined,
    localState: 'closed',
    inForce: undefined,
    probe: undefined,
    step: undefined,
    ...parts,
  };
}

function placement(parts: Partial<Placement> = {}): Placement {
  return {
    nowMs: 100_000,
    spanMs: 1_000,
    sequence: 1,
    sinceBirth: true,
    rule: 'r',
    judgeFromMs: -Infinity,
    longestSpanMs: 10_000,
    ...parts,
  };
}

function judged(
  series: AgentSeries,
  windowMs: number,
  nowMs = 100_000,
): { successes: number; failures: number } {
  const sum = { successes: 0, failures: 0, third: 0 };
  series.judged.sum(windowMs, nowMs, sum);
  return { successes: Math.round(sum.successes * 100) / 100, failures: Math.round(sum.failures * 100) / 100 };
}

describe('cumulative counts of one agent', () => {
  test('S9.1: repeated, overtaken and lost reports leave exact sums and count nothing twice', () => {
    const outcome = fc.record({ ok: fc.boolean(), rejected: fc.integer({ min: 0, max: 3 }) });
    const journey = fc.record({
      outcomes: fc.array(outcome, { minLength: 1, maxLength: 60 }),
      // Which reports arrive, in which order, how often.
      arrivals: fc.array(fc.nat(), { maxLength: 120 }),
    });
    fc.assert(
      fc.property(journey, ({ outcomes, arrivals }) => {
        const reports: KeyCounts[] = [];
        let [successes, failures, rejected] = [0, 0, 0];
        for (const { ok, rejected: more } of outcomes) {
          if (ok) successes += 1;
          else failures += 1;
          rejected += more;
          reports.push(counts({ successes, failures, rejected }));
        }
        const series = seriesOf();
        let newest = 0;
        let placed = 0;
        const order = [...arrivals.map((pick) => pick % reports.length), reports.length - 1];
        for (const index of order) {
          const report = reports[index];
          if (report === undefined) continue;
          const added = series.take(report, placement({ sequence: index + 1 }));
          if (added.any) placed = report.successes + report.failures;
          newest = Math.max(newest, index);
          const known = reports[newest];
          expect(series.totals('r')).toMatchObject({
            successes: known?.successes,
            failures: known?.failures,
            rejected: known?.rejected,
          });
        }
        expect(placed).toBe(successes + failures);
        const sum = judged(series, 10_000);
        expect(sum.successes).toBeCloseTo(successes, 1);
        expect(sum.failures).toBeCloseTo(failures, 1);
      }),
    );
  });

  test('the first report of an unknown past is a baseline: accounted, not judged', () => {
    const series = seriesOf();
    series.take(counts({ failures: 5_000 }), placement({ sequence: 900, sinceBirth: false }));
    expect(series.totals('r')).toMatchObject({ failures: 5_000 });
    expect(judged(series, 10_000).failures).toBe(0);
    series.take(counts({ failures: 5_003 }), placement({ sequence: 901, sinceBirth: false }));
    expect(judged(series, 10_000).failures).toBe(3);
  });

  test('a span longer than the window (a healed partition) is accounted, not judged', () => {
    const series = seriesOf();
    series.take(counts({ failures: 700 }), placement({ spanMs: 120_000 }));
    expect(series.totals('r')).toMatchObject({ failures: 700 });
    expect(judged(series, 10_000)).toEqual({ successes: 0, failures: 0 });
  });

  test('failures lie after the first one of their run, successes before the last one', () => {
    const series = seriesOf();
    const parts = {
      successes: 90,
      failures: 10,
      runFailures: 10,
      runFirstFailureAgeMs: 100,
      lastSuccessAgeMs: 100,
    };
    series.take(counts(parts), placement());
    expect(judged(series, 100)).toEqual({ successes: 0, failures: 10 });
    expect(judged(series, 1_000)).toEqual({ successes: 90, failures: 10 });
  });

  test('counters that went back begin anew and add nothing', () => {
    const series = seriesOf();
    series.take(counts({ failures: 50 }), placement());
    series.take(counts({ failures: 3 }), placement({ sequence: 2 }));
    series.take(counts({ failures: 4 }), placement({ sequence: 3 }));
    expect(judged(series, 10_000).failures).toBe(51);
  });

  test('counts under another rule are kept apart and are not judged', () => {
    const series = seriesOf();
    series.take(counts({ rule: 'canary', failures: 500 }), placement());
    expect(judged(series, 10_000).failures).toBe(0);
    expect(series.totals('canary')).toMatchObject({ failures: 500 });
  });

  test('nothing before a fresh start is judged, the rest of a span is', () => {
    const series = seriesOf();
    series.take(counts({ successes: 100 }), placement({ judgeFromMs: 99_750 }));
    expect(judged(series, 10_000).successes).toBe(25);
  });
});
