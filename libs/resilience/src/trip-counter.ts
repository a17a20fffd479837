import { CountWindow } from './count-window.js';
import type { RateRule, TripSettings } from './settings.js';
import { type OutcomeWindow, TimeWindow } from './time-window.js';

export type TripReason = 'consecutive-failures' | 'failure-rate' | 'slow-rate';

/** One ended call, as the trip rules see it. */
export interface CountedOutcome {
  readonly failed: boolean;
  readonly slow: boolean;
}

/**
 * Counts outcomes and says when a rule holds. Rates are judged at each outcome and never by a timer.
 * Neutral outcomes must not be recorded: they neither count nor end a run of failures.
 */
export class TripCounter {
  private run = 0;
  private readonly failures: OutcomeWindow | undefined;
  private readonly slow: OutcomeWindow | undefined;

  constructor(private readonly trip: TripSettings) {
    this.failures = trip.failureRate === undefined ? undefined : windowOf(trip.failureRate);
    this.slow = trip.slowRate === undefined ? undefined : windowOf(trip.slowRate);
  }

  /** The rule that holds after this outcome; undefined = none. */
  record(outcome: CountedOutcome, nowMs: number): TripReason | undefined {
    const { consecutiveFailures, failureRate, slowRate } = this.trip;
    this.run = outcome.failed ? this.run + 1 : 0;
    this.failures?.record(outcome.failed, nowMs);
    this.slow?.record(outcome.slow, nowMs);
    if (consecutiveFailures !== undefined && this.run >= consecutiveFailures) return 'consecutive-failures';
    if (this.failures !== undefined && holds(failureRate, this.failures, nowMs)) return 'failure-rate';
    if (this.slow !== undefined && holds(slowRate, this.slow, nowMs)) return 'slow-rate';
    return undefined;
  }

  /** Calls in the window of the failure rate, or of the slow rate; undefined when no rate is judged. */
  calls(nowMs: number): number | undefined {
    return (this.failures ?? this.slow)?.calls(nowMs);
  }
}

function windowOf(rule: RateRule): OutcomeWindow {
  return 'ms' in rule.window ? new TimeWindow(rule.window.ms) : new CountWindow(rule.window.calls);
}

function holds(rule: RateRule | undefined, window: OutcomeWindow, nowMs: number): boolean {
  if (rule === undefined) return false;
  const calls = window.calls(nowMs);
  // 1e-9: 0.07 × 100 is 7.000000000000001.
  return calls >= rule.minimumCalls && window.bad(nowMs) >= rule.ratio * calls - 1e-9;
}
