import { asPromise } from './as-promise.js';
import { AttemptRun } from './attempt-run.js';
import type { BreakerGate } from './breaker-gate.js';
import type { Attempt, CallRequest, CallResult, Judgement, ValueAdapter } from './call.js';
import { CallExecution } from './call-execution.js';
import { concluded } from './call-results.js';
import type { CallWork } from './call-task.js';
import { classifyAnswer } from './classify.js';
import type { CompiledPolicy } from './compiled-policy.js';
import { enterDirectly, mayBeDirect } from './direct-entry.js';
import type { GuardShared } from './guard-shared.js';
import { TICK_MS } from './host.js';
import { judgeAnswer } from './judging.js';

/** What an attempt is told that nothing but itself can end. All of them are alike, so there is one. */
const UNBOUNDED: Attempt = Object.freeze({
  number: 1,
  timeoutMs: Infinity,
  probe: false,
  /** Never aborts. One for each question: listeners would gather on a shared one. */
  get signal(): AbortSignal {
    return new AbortController().signal;
  },
});

/**
 * A direct call under a policy without any timeout, for a caller who wants a value. Nothing but the attempt's own end
 * ends it, so that the attempt's promise carries the value, and there is no object of the call at all.
 * Undefined = it cannot be made so.
 */
export function callUnbounded<T>(
  shared: GuardShared,
  request: CallRequest,
  run: CallWork<T>['run'],
  adapter: ValueAdapter<T>,
): Promise<T> | undefined {
  const { policy, host } = shared;
  const { ticker } = host;
  if (ticker === undefined || policy.precise || request.deadlineMs !== undefined) return undefined;
  if (!mayBeDirect(shared, request, adapter)) return undefined;
  const startedMs = ticker.nowMs();
  const gate = shared.gateFor(request, startedMs);
  const epoch = enterDirectly(shared, gate, startedMs);
  if (epoch < 0) return undefined;
  try {
    // No closure within these: it would cost each call, and not only those that fail.
    return asPromise(run(UNBOUNDED)).then(
      (value) => {
        const judgement = judgeAnswer(shared, adapter, value);
        if (classifyAnswer(judgement, policy.failures).kind !== 'success') {
          return goOn({ shared, policy, gate, epoch }, { request, run, adapter }, { value, judgement });
        }
        if (gate !== undefined) gate.succeeded(epoch, ticker.nowMs() + TICK_MS);
        shared.bulkhead.release();
        shared.totals.fresh += 1;
        return value;
      },
      (error: unknown) => goOn({ shared, policy, gate, epoch }, { request, run, adapter }, { error }),
    );
  } catch (error) {
    return goOn({ shared, policy, gate, epoch }, { request, run, adapter }, { error });
  }
}

interface Begun {
  readonly shared: GuardShared;
  readonly policy: CompiledPolicy;
  readonly gate: BreakerGate | undefined;
  readonly epoch: number;
}

function goOn<T>(
  { shared, policy, gate, epoch }: Begun,
  work: CallWork<T> & { readonly adapter: ValueAdapter<T> },
  end: { readonly value: T; readonly judgement: Judgement } | { readonly error: unknown },
): Promise<T> {
  const result = new Promise<CallResult<T>>((settle) => {
    const nowMs = shared.host.nowMs();
    const attempt = new AttemptRun(1, nowMs);
    attempt.timeoutMs = Infinity;
    const execution = new CallExecution(shared, { ...work, settle }, nowMs, policy);
    execution.adopt(attempt, gate, epoch);
    if ('error' in end) execution.threw(attempt, end.error);
    else execution.judged(attempt, end.value, end.judgement);
  });
  return concluded(result, work.adapter);
}
