import { AttemptRun } from './attempt-run.js';
import type { CompiledPolicy } from './compiled-policy.js';
import type { Permit } from './permit.js';

export interface AttemptLimits {
  readonly policy: CompiledPolicy;
  /** Undefined without a breaker. */
  readonly permit: Permit | undefined;
  /** When the call ends in any case. */
  readonly endMs: number;
  /** That end is the caller's deadline, earlier than the policy's. */
  readonly cutByCaller: boolean;
}

/**
 * What one attempt may take. It is full when it has its policy timeout: `timeout.attempt`, or without one what is left
 * of the policy's total; a probe's is at most `probe.timeout`. It never outlives its permit, or the next probe would run
 * beside it. A call may find less of a permit left (the fleet's runs from receipt, this process's from the bulkhead's
 * queue on): half of the timeout is enough there, or a hanging dependency would never fail a probe.
 */
export function planAttempt(limits: AttemptLimits, number: number, nowMs: number): AttemptRun {
  const { permit, endMs, cutByCaller } = limits;
  const { timeout, breaker } = limits.policy.settings;
  const attempt = new AttemptRun(number, nowMs);
  attempt.probe = permit?.probe === true;
  const leftMs = endMs - nowMs;
  let wantedMs = timeout.attemptMs ?? (cutByCaller ? Infinity : leftMs);
  if (attempt.probe && breaker !== undefined) wantedMs = Math.min(wantedMs, breaker.probe.timeoutMs);
  let timeoutMs = Math.min(wantedMs, leftMs);
  let full = timeoutMs >= wantedMs;
  if (permit?.probe === true && permit.deadlineMs - nowMs < timeoutMs) {
    timeoutMs = permit.deadlineMs - nowMs;
    full = full && timeoutMs >= wantedMs / 2;
  }
  attempt.timeoutMs = timeoutMs;
  attempt.full = full;
  return attempt;
}
