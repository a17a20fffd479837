import type { DegradedMode } from './call.js';
import type { RejectionReason } from './outcome.js';

/** Counts of one guard since it began; `inFlight`, `waiting`, `limit` and `retriesInWindow` are of now. */
export interface GuardTotals {
  /** Logical calls begun. */
  calls: number;
  fresh: number;
  failed: number;
  cancelled: number;
  /** By the reason the caller was given, or would have been but for a fallback. */
  readonly rejected: Record<RejectionReason, number>;
  readonly degraded: Record<DegradedMode, number>;
  /** Attempts begun, first ones included; simplified calls are not attempts. */
  attempts: number;
  retries: number;
  timeouts: number;
  /** Retries not made because their budget was spent. */
  retriesRefused: number;
  /** Shadow mode: calls that would have been rejected. */
  shadowRejected: number;
  /** Calls that passed without a breaker, the cap on keys being reached. */
  withoutKey: number;
  /** Functions of users and adapters that threw. */
  callbacksFailed: number;
  /** Attempts that run. */
  inFlight: number;
  /** Calls in the bulkhead's queue. */
  waiting: number;
  /** Attempts that may run at once now: less than `maxConcurrent` where an adaptive limit says so. Absent = no limit. */
  limit: number | undefined;
  /** Retries in the budget's window, those still in their back-off included; 0 without a budget. */
  retriesInWindow: number;
}

export function newTotals(): GuardTotals {
  return {
    calls: 0,
    fresh: 0,
    failed: 0,
    cancelled: 0,
    rejected: {
      'breaker-open': 0,
      'breaker-half-open': 0,
      'breaker-recovering': 0,
      'forced-open': 0,
      'bulkhead-full': 0,
      'bulkhead-timeout': 0,
      'retry-budget': 0,
      deadline: 0,
      drill: 0,
    },
    degraded: { 'last-good': 0, simplified: 0, static: 0, function: 0 },
    attempts: 0,
    retries: 0,
    timeouts: 0,
    retriesRefused: 0,
    shadowRejected: 0,
    withoutKey: 0,
    callbacksFailed: 0,
    inFlight: 0,
    waiting: 0,
    limit: undefined,
    retriesInWindow: 0,
  };
}
