import type { OutcomeKind } from './outcome.js';
import type { LocalStateName } from './local-breaker.js';
import type { VerdictVersion } from './verdict.js';

/** What an agent reports of one breaker key. Cumulative since the gate began, per rule; see fleet.proto, KeyReport. */
export interface GateCounters {
  /** `ruleHash` of the settings the counts belong to. */
  readonly rule: string;
  readonly successes: number;
  readonly failures: number;
  /** Subset of successes + failures. */
  readonly slow: number;
  readonly ignored: number;
  /** Attempts the breaker refused, whoever decided it: fleet, person, this process. */
  readonly rejected: number;
  /** Failures since the last success. */
  readonly runFailures: number;
  /** Age of the first of them; 0 when there is none. */
  readonly runFirstFailureAgeMs: number;
  readonly successesSinceFailure: number;
  /** Undefined when there never was one. */
  readonly lastSuccessAgeMs: number | undefined;
  readonly localState: LocalStateName;
  /** The verdict in force; undefined when none, or its time to live ended. */
  readonly inForce: VerdictVersion | undefined;
  /** Repeated until a newer verdict arrives. */
  readonly probe: ProbeReport | undefined;
  /** While a share is in force. */
  readonly step: StepReport | undefined;
}

export interface ProbeReport {
  readonly version: VerdictVersion;
  readonly outcome: 'success' | 'failure' | 'none';
  /** Calls of the permit that ended. */
  readonly calls: number;
}

export interface StepReport {
  readonly offered: number;
  readonly admitted: number;
  readonly successes: number;
  readonly failures: number;
  readonly slow: number;
}

/** Totals under one rule. */
export class RuleTotals {
  successes = 0;
  failures = 0;
  slow = 0;
  ignored = 0;
  rejected = 0;

  count(kind: OutcomeKind, slow: boolean): void {
    if (kind === 'ignored') this.ignored += 1;
    else if (kind === 'failure') this.failures += 1;
    else this.successes += 1;
    if (slow && kind !== 'ignored') this.slow += 1;
  }
}

/** The present run: since the last success, or since the last failure. Neutral outcomes leave it alone. */
export class OutcomeRun {
  failures = 0;
  successes = 0;
  firstFailureMs = 0;
  /** Below 0: there was none. A fraction from the start: the engine then keeps the number in place. */
  lastSuccessMs = -0.5;

  count(kind: OutcomeKind, nowMs: number): void {
    if (kind === 'failure') {
      if (this.failures === 0) this.firstFailureMs = nowMs;
      this.failures += 1;
      this.successes = 0;
    } else if (kind === 'success') {
      this.succeeded(nowMs);
    }
  }

  succeeded(nowMs: number): void {
    this.failures = 0;
    this.successes += 1;
    this.lastSuccessMs = nowMs;
  }
}
