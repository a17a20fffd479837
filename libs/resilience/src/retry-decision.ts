import { backoffMs, retryWaitMs } from './backoff.js';
import type { BreakerGate } from './breaker-gate.js';
import type { CallRequest, Judgement, Spent } from './call.js';
import { type CompiledPolicy, isRetryable } from './compiled-policy.js';
import type { GuardShared } from './guard-shared.js';
import type { Refusal } from './permit.js';

export interface EndedAttempt {
  readonly request: CallRequest;
  /** Attempts made so far. */
  readonly attempts: number;
  /** Undefined when the attempt timed out. */
  readonly judgement: Judgement | undefined;
  readonly spent: Spent;
  readonly endMs: number;
  readonly gate: BreakerGate | undefined;
}

/**
 * `wait`: another attempt after so long; its place in the budget is reserved.
 * `exhausted`: no more, and the layer above must not retry either. `no`: no more.
 */
export type RetryDecision =
  | { readonly then: 'wait'; readonly waitMs: number }
  | { readonly then: 'exhausted' }
  | { readonly then: 'no' };

const NO: RetryDecision = { then: 'no' };
const EXHAUSTED: RetryDecision = { then: 'exhausted' };

/** Whether a failed attempt is followed by another: kind and number, breaker, deadline, budget, in this order. */
export function decideRetry(
  shared: GuardShared,
  policy: CompiledPolicy,
  ended: EndedAttempt,
  nowMs: number,
): RetryDecision {
  const { request, attempts, judgement } = ended;
  const { operation } = request;
  // An answer that carries the mark of a lower layer's spent retries hands it upward.
  const no = judgement?.noRetry === true ? EXHAUSTED : NO;
  if (ended.spent !== 'nothing') return no;
  const retry = policy.retryFor(request);
  if (retry === undefined || !isRetryable(retry, judgement)) return no;
  if (attempts >= retry.maxAttempts) return retry.maxAttempts > 1 ? EXHAUSTED : NO;
  if (ended.gate?.wouldRefuse(nowMs) === true) {
    shared.emit({ type: 'retry-stopped', operation, why: 'breaker' });
    return NO;
  }
  const backoff = backoffMs(attempts, retry.backoff, shared.host.random());
  const waitMs = retryWaitMs(backoff, judgement?.retryAfterMs);
  if (nowMs + waitMs >= ended.endMs) {
    shared.emit({ type: 'retry-stopped', operation, why: 'deadline' });
    return NO;
  }
  if (shared.budget?.reserve(nowMs) === false) {
    shared.totals.retriesRefused += 1;
    shared.emit({ type: 'retry-stopped', operation, why: 'budget' });
    return EXHAUSTED;
  }
  shared.emit({ type: 'retry', operation, attempt: attempts + 1, waitMs });
  return { then: 'wait', waitMs };
}

/** A retry that was decided on and then refused. */
export function whyStopped(refusal: Refusal): 'breaker' | 'bulkhead' | 'deadline' {
  if (refusal.reason === 'deadline') return 'deadline';
  return refusal.reason.startsWith('bulkhead') ? 'bulkhead' : 'breaker';
}
