import { BreakerState, ProbeOutcome, type BreakerKey, type KeyReport } from '@bulwark/protocol';
import type { GateCounters, LocalStateName, ProbeReport } from '@bulwark/resilience';

/** A gate's counters as they go over the wire. Ages are whole milliseconds, rounded down. */
export function toKeyReport(key: BreakerKey, counters: GateCounters): KeyReport {
  const { probe, step } = counters;
  return {
    key,
    rule: counters.rule,
    successes: counters.successes,
    failures: counters.failures,
    slow: counters.slow,
    ignored: counters.ignored,
    rejected: counters.rejected,
    runFailures: counters.runFailures,
    runFirstFailureAgeMs: wholeMs(counters.runFirstFailureAgeMs),
    successesSinceFailure: counters.successesSinceFailure,
    ...(counters.lastSuccessAgeMs !== undefined && { lastSuccessAgeMs: wholeMs(counters.lastSuccessAgeMs) }),
    localState: STATES[counters.localState],
    inForce: counters.inForce,
    probe: probe && { version: probe.version, outcome: OUTCOMES[probe.outcome], calls: probe.calls },
    step: step && { ...step },
  };
}

const STATES: Record<LocalStateName, BreakerState> = {
  closed: BreakerState.BREAKER_STATE_CLOSED,
  open: BreakerState.BREAKER_STATE_OPEN,
  'half-open': BreakerState.BREAKER_STATE_HALF_OPEN,
  recovering: BreakerState.BREAKER_STATE_RECOVERING,
};

const OUTCOMES: Record<ProbeReport['outcome'], ProbeOutcome> = {
  success: ProbeOutcome.PROBE_OUTCOME_SUCCESS,
  failure: ProbeOutcome.PROBE_OUTCOME_FAILURE,
  none: ProbeOutcome.PROBE_OUTCOME_NONE,
};

/** Fits a uint32: an age of more than 49 days is that much. */
function wholeMs(ms: number): number {
  return Math.min(2 ** 32 - 1, Math.max(0, Math.floor(ms)));
}
