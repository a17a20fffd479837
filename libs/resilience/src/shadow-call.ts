import { asPromise } from './as-promise.js';
import { AttemptRun } from './attempt-run.js';
import type { CallResult, Judgement } from './call.js';
import { failedCall } from './call-results.js';
import type { CallTask } from './call-task.js';
import { type AttemptEnd, classify } from './classify.js';
import type { GuardShared } from './guard-shared.js';
import { callerHold, isHeldUp, judgeAnswer, judgeThrown } from './judging.js';
import type { RejectionReason } from './outcome.js';
import { Permit } from './permit.js';

/**
 * A call under a policy that only watches: made once, at once, as if there were no guard, while breaker and bulkhead
 * decide as they would. What they would have refused is counted and told. No timeout, retry or fallback is applied;
 * an answer that took longer than the attempt timeout counts as the timeout it would have been.
 */
export function shadowCall<T>(shared: GuardShared, task: CallTask<T>, nowMs: number): void {
  const { settings } = shared.policy;
  const { deadlineMs, signal } = task.request;
  const once = { attempts: 1, policy: shared.policy.label };
  const gate = shared.gateFor(task.request, nowMs);
  const answer = gate?.admit(nowMs);
  const permit = answer instanceof Permit ? answer : undefined;
  const limit = settings.bulkhead;
  const full = limit !== undefined && shared.bulkhead.inFlight >= limit.maxConcurrent + limit.maxQueued;
  if (answer !== undefined && !(answer instanceof Permit)) wouldReject(shared, task, answer.reason);
  else if (full) wouldReject(shared, task, 'bulkhead-full');
  shared.bulkhead.enter();
  shared.totals.attempts += 1;
  const attempt = new AttemptRun(1, nowMs);
  attempt.timeoutMs = deadlineMs === undefined ? Infinity : Math.max(0, deadlineMs);
  const onAbort = (): void => attempt.abort(signal?.reason);
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });

  const ended = (end: AttemptEnd): void => {
    signal?.removeEventListener('abort', onAbort);
    shared.bulkhead.release();
    const endMs = shared.host.nowMs();
    const tookMs = endMs - nowMs;
    const hold = callerHold(shared, task.adapter);
    const durationMs = Math.max(0, tookMs - hold.heldMs);
    const timeoutMs = settings.timeout.attemptMs ?? settings.timeout.totalMs;
    const late: AttemptEnd = isHeldUp(hold, tookMs) ? { how: 'held-up' } : { how: 'timed-out', full: true };
    const judged = tookMs >= timeoutMs ? late : end;
    const { kind } = classify(signal?.aborted === true ? { how: 'cancelled' } : judged, settings.failures);
    if (permit !== undefined) gate?.complete(permit, { kind, durationMs }, endMs);
    else gate?.observe({ kind, durationMs }, endMs);
  };
  const answered = (value: T): void => {
    const judgement = judgeAnswer(shared, task.adapter, value);
    ended({ how: 'answered', judgement });
    task.settle(shadowAnswer(shared, { judgement, value }));
  };
  const threw = (error: unknown): void => {
    const judgement = judgeThrown(shared, task.adapter, error);
    ended({ how: 'threw', judgement });
    const retriesExhausted = judgement.noRetry === true;
    const cancelled = signal?.aborted === true;
    if (cancelled) shared.totals.cancelled += 1;
    else shared.totals.failed += 1;
    task.settle({ ...failedCall<T>({ value: undefined, error }, once), cancelled, retriesExhausted });
  };
  try {
    asPromise(task.run(attempt)).then(answered, threw);
  } catch (error) {
    threw(error);
  }
}

function wouldReject<T>(shared: GuardShared, task: CallTask<T>, reason: RejectionReason): void {
  shared.totals.shadowRejected += 1;
  shared.emit({ type: 'shadow', operation: task.request.operation, reason });
}

function shadowAnswer<T>(
  shared: GuardShared,
  answer: { readonly judgement: Judgement; readonly value: T },
): CallResult<T> {
  const { meaning } = classify(
    { how: 'answered', judgement: answer.judgement },
    shared.policy.settings.failures,
  );
  if (meaning === 'unavailable') {
    shared.totals.failed += 1;
    const call = { attempts: 1, policy: shared.policy.label };
    // What a lower layer said goes upward, whatever this one does about it.
    const retriesExhausted = answer.judgement.noRetry === true;
    return { ...failedCall({ value: answer.value, error: undefined }, call), retriesExhausted };
  }
  shared.totals.fresh += 1;
  return { kind: 'fresh', value: answer.value, attempts: 1, policy: shared.policy.label };
}
