import type { BreakerSettings, RateRule } from '@bulwark/resilience';
import type { AgentSeries } from './agent-series.js';
import { judgeConsecutive } from './consecutive-rule.js';
import { CALM, type Judgement } from './judgement.js';
import { judgeRate, type RateCase } from './rate-rule.js';

export interface TripCase {
  readonly settings: BreakerSettings;
  readonly nowMs: number;
  readonly lastSuccessMs: number;
  readonly judgeFromMs: number;
  readonly observedFromMs: number;
  /** False: only whether it trips is asked, which is cheaper. */
  readonly tellsLocalised: boolean;
}

/**
 * An agent with an outcome within this (or the rule's window, if longer) is there, even if it has just gone: the only
 * agent heard at this moment is not the only one there is.
 */
const PRESENT_MS = 10_000;

/** Any rule that holds trips. The strongest word of all rules. */
export function judgeTrip(series: readonly AgentSeries[], trip: TripCase): Judgement {
  const { settings, nowMs } = trip;
  const { consecutiveFailures, failureRate, slowRate } = settings.trip;
  const { quorum } = settings;
  const present = presentAgents(series, nowMs, Math.max(PRESENT_MS, longestWindowMs(settings)));
  let word: Judgement = CALM;
  if (consecutiveFailures !== undefined) {
    word = judgeConsecutive(series, { ...trip, failures: consecutiveFailures, quorum, present });
  }
  const rates: [RateRule | undefined, RateCase['reason']][] = [
    [failureRate, 'failure-rate'],
    [slowRate, 'slow-rate'],
  ];
  for (const [rule, reason] of rates) {
    if (word.kind === 'trips' || rule === undefined || !isTimed(rule)) continue;
    word = stronger(word, judgeRate(series, { ...trip, rule, reason, quorum, present }));
  }
  return word;
}

/** The longest window of the rules, milliseconds; the run of consecutive failures lies within it too. */
export function longestWindowMs(settings: BreakerSettings): number {
  const windows = [settings.trip.failureRate, settings.trip.slowRate].map((rule) =>
    rule !== undefined && 'ms' in rule.window ? rule.window.ms : 0,
  );
  return Math.max(1000, ...windows);
}

function presentAgents(series: readonly AgentSeries[], nowMs: number, withinMs: number): number {
  let present = 0;
  for (const one of series) if (nowMs - one.outcomeMs <= withinMs) present += 1;
  return present;
}

function stronger(one: Judgement, other: Judgement): Judgement {
  if (other.kind === 'trips' || one.kind === 'calm')
    return other.kind === 'calm' && other.note === undefined ? one : other;
  return one;
}

/** Windows by calls are for scope Instance only; the fleet does not judge them. */
function isTimed(rule: RateRule): rule is RateCase['rule'] {
  return 'ms' in rule.window;
}
