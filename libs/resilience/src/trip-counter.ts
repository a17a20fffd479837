import { CountWindow } from './count-window.js';
import type { RateRule, TripSettings } from './settings.js';
import { type OutcomeWindow, TimeWindow } from './time-window.js';

export type TripReason = 'consecutive-failures' | 'failure-rate' | 'slow-rate';

/**
 * Counts outcomes and says when a rule holds. Rates are judged at each outcome and never by a timer.
 * Neutral outcomes must not be recorded: they neither count nor end a run of failures.
 */
export class TripCounter {
  private run = 0;
  /** Infinity = no such rule. */
  private readonly consecutive: number;
  private readonly failures: OutcomeWindow | undefined;
  private readonly slow: OutcomeWindow | undefined;

  constructor(private readonly trip: TripSettings) {
    this.consecutive = trip.consecutiveFailures ?? Infinity;
    this.failures = trip.failureRate === undefined ? undefined : windowOf(trip.failureRate);
    this.slow = trip.slowRate === undefined ? undefined : windowOf(trip.slowRate);
  }

  /** As `record` of a success that was not slow: what nearly every call is. */
  succeed(nowMs: number): TripReason | undefined {
    this.run = 0;
    const { failures, slow } = this;
    if (failures !== undefined) failures.record(false, nowMs);
    if (slow !== undefined) slow.record(false, nowMs);
    if ((failures === undefined || failures.badHeld === 0) && (slow === undefined || slow.badHeld === 0)) {
      return undefined;
    }
    return this.held();
  }

  /** The rule that holds after this outcome; undefined = none. */
  record(failed: boolean, slow: boolean, nowMs: number): TripReason | undefined {
    this.run = failed ? this.run + 1 : 0;
    this.failures?.record(failed, nowMs);
    this.slow?.record(slow, nowMs);
    return this.run >= this.consecutive ? 'consecutive-failures' : this.held();
  }

  private held(): TripReason | undefined {
    // A window without a bad outcome trips nothing, whatever its rule: the rules are not even read.
    if (this.failures !== undefined && this.failures.badHeld > 0) {
      if (holds(this.trip.failureRate, this.failures)) return 'failure-rate';
    }
    if (this.slow !== undefined && this.slow.badHeld > 0) {
      if (holds(this.trip.slowRate, this.slow)) return 'slow-rate';
    }
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

/** Of a window that has just recorded. */
function holds(rule: RateRule | undefined, window: OutcomeWindow): boolean {
  if (rule === undefined) return false;
  const calls = window.callsHeld;
  // 1e-9: 0.07 × 100 is 7.000000000000001.
  return calls >= rule.minimumCalls && window.badHeld >= rule.ratio * calls - 1e-9;
}
