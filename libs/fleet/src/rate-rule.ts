import type { RateRule } from '@bulwark/resilience';
import type { AgentSeries } from './agent-series.js';
import {
  CALM,
  type Judgement,
  percent,
  type Quorum,
  quorumOf,
  seconds,
  type TripReason,
} from './judgement.js';
import { ROUNDING, weigh, type Weighed } from './weigh.js';

/** A window is halved down to this: a fault behind a long window would else be found only when half of it is bad. */
const SHORTEST_MS = 250;
/** What a short or unfilled window needs: this many times the minimum, and a lower bound this many deviations away. */
const STRICT_CALLS = 5;
/** Fifty looks a second at several windows, for years, without a false trip. */
const STRICT_Z = 6;

export interface RateCase {
  readonly rule: RateRule & { readonly window: { readonly ms: number } };
  readonly reason: Extract<TripReason, 'failure-rate' | 'slow-rate'>;
  readonly quorum: Quorum;
  /** Agents with an outcome lately. */
  readonly present: number;
  /** Whether it matters that a rule holds for too few agents, or only that it trips. */
  readonly tellsLocalised: boolean;
  readonly nowMs: number;
  /** The fleet has been observed since; the full window is filled when that is its length ago. */
  readonly observedFromMs: number;
}

/** The window and its halves, longest first. */
export function judgedWindows(windowMs: number): number[] {
  const windows = [windowMs];
  for (let half = windowMs / 2; half >= SHORTEST_MS; half /= 2) windows.push(half);
  return windows;
}

/**
 * Judges one rate over the fleet: the full window, once it has been filled, by the rule as it was written; shorter ones,
 * and one that is not yet filled, by far more calls and a lower bound of the true ratio, since they are looked at many
 * times and a small sample reaches any ratio sooner or later.
 */
export function judgeRate(series: readonly AgentSeries[], rate: RateCase): Judgement {
  const { rule, reason, nowMs } = rate;
  const bad = reason === 'failure-rate' ? 'failures' : 'slow';
  const quorum = (active: number): number => quorumOf(rate.quorum, active, rate.present);
  const leastFailing = rate.tellsLocalised ? () => 0 : quorum;
  let localised: Judgement | undefined;
  let note: string | undefined;
  for (const ms of judgedWindows(rule.window.ms)) {
    const full = ms === rule.window.ms;
    const counts = weigh(series, { ms, nowMs, bad, ratio: rule.ratio, leastFailing });
    if (full) note = noteOf(rule, counts);
    const filled = full && nowMs - rate.observedFromMs >= ms;
    if (!(filled ? holds(rule, counts) : holdsStrictly(rule, counts))) {
      // Too few bad ones here are too few in every shorter window.
      if (counts.told <= STRICT_CALLS * rule.minimumCalls * rule.ratio) break;
      continue;
    }
    const needed = quorum(counts.active);
    const message = messageOf(rate, counts, { ms, needed });
    if (counts.failing >= needed) return { kind: 'trips', reason, message };
    localised ??= { kind: 'localised', reason, message };
  }
  return localised ?? (note === undefined ? CALM : { kind: 'calm', note });
}

/** Lower end of the Wilson score interval (Wilson 1927): `bad` of `calls`, `z` standard deviations. */
export function wilsonLower(bad: number, calls: number, z: number): number {
  if (calls <= 0) return 0;
  const ratio = bad / calls;
  const square = (z * z) / calls;
  const half = z * Math.sqrt((ratio * (1 - ratio) + square / 4) / calls);
  return (ratio + square / 2 - half) / (1 + square);
}

function holds(rule: RateRule, { calls, bad }: Weighed): boolean {
  return calls >= rule.minimumCalls - ROUNDING && bad >= rule.ratio * calls - ROUNDING;
}

function holdsStrictly(rule: RateRule, { calls, bad }: Weighed): boolean {
  if (calls < STRICT_CALLS * rule.minimumCalls - ROUNDING) return false;
  return wilsonLower(Math.min(bad, calls), calls, STRICT_Z) > rule.ratio;
}

function noteOf(rule: RateRule, { calls, bad }: Weighed): string | undefined {
  if (calls >= rule.minimumCalls - ROUNDING || bad < ROUNDING) return undefined;
  return `below minimumCalls: ${Math.round(calls)} of ${rule.minimumCalls}`;
}

function messageOf(
  rate: RateCase,
  counts: Weighed,
  window: { readonly ms: number; readonly needed: number },
): string {
  const { rule } = rate;
  const what = rate.reason === 'failure-rate' ? 'failed' : 'were slow';
  return (
    `${percent(counts.bad, counts.calls)} of ${Math.round(counts.calls)} calls ${what} in ${seconds(Math.min(window.ms, rate.nowMs - rate.observedFromMs))}, ` +
    `seen by ${counts.failing} of ${counts.active} agents (quorum ${window.needed}); ` +
    `rule: ${percent(rule.ratio, 1)} of at least ${rule.minimumCalls} calls in ${seconds(rule.window.ms)}`
  );
}
