import type { BreakerGate } from './breaker-gate.js';
import type { CallAdapter, CallRequest } from './call.js';
import type { GuardShared } from './guard-shared.js';

/**
 * Whether a call may be made directly at all: nobody listens for its cancellation, nobody holds it up, no remembered
 * answer has a part in it, and its caller has time left.
 */
export function mayBeDirect<T>(shared: GuardShared, request: CallRequest, adapter: CallAdapter<T>): boolean {
  const { policy } = shared;
  if (!policy.direct || request.signal !== undefined || adapter.callerHold !== undefined) return false;
  if (policy.lastGood !== undefined && request.cacheKey !== undefined) return false;
  return request.deadlineMs === undefined || !(request.deadlineMs <= 0);
}

/**
 * Takes the bulkhead's slot and counts the call and its first attempt, when nothing stands in its way: the epoch of
 * its closed breaker; 0 without a breaker; -1 = something does, and nothing was taken or counted.
 */
export function enterDirectly(shared: GuardShared, gate: BreakerGate | undefined, nowMs: number): number {
  const { bulkhead, totals } = shared;
  let epoch = 0;
  if (gate !== undefined) {
    epoch = gate.passage(nowMs);
    if (epoch === 0) return -1;
  }
  if (!bulkhead.free) return -1;
  bulkhead.enter();
  totals.calls += 1;
  totals.attempts += 1;
  shared.budget?.firstAttempt(nowMs);
  return epoch;
}
