import { asPromise } from './as-promise.js';
import { type AttemptLimits, planAttempt } from './attempt-plan.js';
import { AttemptTimeoutError, type RunningAttempt } from './attempt-run.js';
import type { BreakerGate } from './breaker-gate.js';
import { breakerName } from './breaker-name.js';
import type { Waiter } from './bulkhead.js';
import type { CallFailure, CallResult, DegradedReason, Judgement } from './call.js';
import { type Failed, failedCall, refreshingCall, rejectedCall } from './call-results.js';
import type { CallTask } from './call-task.js';
import { type Classified, classify, classifyAnswer } from './classify.js';
import type { CompiledPolicy } from './compiled-policy.js';
import { FallbackRun } from './fallback-run.js';
import type { GuardShared } from './guard-shared.js';
import { type RememberedEnd, rememberAnswer } from './last-good-writes.js';
import { callerHold, isHeldUp, judgeAnswer, judgeThrown, spentBy, wasStalled } from './judging.js';
import { Permit, type Refusal } from './permit.js';
import { decideRetry, whyStopped } from './retry-decision.js';
import { WheelEntry } from './timer-wheel.js';

/** What the one timer of the call is for now. */
type Phase = 'idle' | 'queued' | 'running' | 'backing-off' | 'falling-back' | 'done';

/**
 * One logical call on its way: deadline → fallback( retry( breaker → bulkhead → attempt timeout → call ) ).
 *
 * Everything taken is held in one place and given back in one place: `permit` and `holdsSlot` by `giveBack` when the attempt
 * was not made, by `endAttempt` when it was; `reserved` (a retry counted by the budget) when that retry is not made.
 */
export class CallExecution<T> extends WheelEntry implements Waiter, AttemptLimits {
  nextWaiter: Waiter | undefined = undefined;
  previousWaiter: Waiter | undefined = undefined;
  queued = false;

  private phase: Phase = 'idle';
  private attempts = 0;
  readonly policy: CompiledPolicy;
  /** The end of the policy's total, or of the caller's deadline when that is earlier. */
  readonly endMs: number;
  readonly cutByCaller: boolean;
  private gate: BreakerGate | undefined;
  permit: Permit | undefined;
  private holdsSlot = false;
  private reserved = false;
  private current: RunningAttempt | undefined;
  /** What the last attempt that was made came to. */
  private lastFailure: { readonly cause: CallFailure<T>; readonly reason: DegradedReason } | undefined;
  private fallback: FallbackRun<T> | undefined;
  private overloadTried = false;
  private refreshing = false;
  private onAbort: (() => void) | undefined;

  constructor(
    private readonly shared: GuardShared,
    private readonly task: CallTask<T>,
    nowMs: number,
    policy = shared.policy,
  ) {
    super();
    this.policy = policy;
    const policyEndMs = nowMs + this.policy.settings.timeout.totalMs;
    const { deadlineMs } = task.request;
    // A deadline that is no number is none; a negative one has passed.
    this.cutByCaller = deadlineMs !== undefined && nowMs + deadlineMs < policyEndMs;
    this.endMs = this.cutByCaller ? nowMs + (deadlineMs ?? 0) : policyEndMs;
  }

  begin(nowMs: number): void {
    const { signal } = this.task.request;
    if (signal !== undefined) {
      if (signal.aborted) {
        this.finishCancelled(signal.reason);
        return;
      }
      this.onAbort = () => this.cancelled(signal.reason);
      signal.addEventListener('abort', this.onAbort, { once: true });
    }
    if (this.policy.lastGood !== undefined && this.servedWhileRefreshing(nowMs)) return;
    this.attempt(nowMs);
  }

  /** Rejects the call before anything is asked: a drill. */
  reject(refusal: Refusal, nowMs: number): void {
    this.refuse(refusal, 'forced by a drill', nowMs);
  }

  /** Takes over a first attempt that is under way without a permit, in a closed breaker's epoch, and holds a slot. */
  adopt(attempt: RunningAttempt, gate: BreakerGate | undefined, epoch: number): void {
    this.attempts = 1;
    this.current = attempt;
    this.phase = 'running';
    this.holdsSlot = true;
    this.gate = gate;
    if (gate !== undefined) this.permit = new Permit('local', epoch, Infinity, undefined);
  }

  /** The bulkhead's: the slot is this call's. */
  granted(): void {
    this.shared.timer.cancel(this);
    this.holdsSlot = true;
    const nowMs = this.shared.host.nowMs();
    const { gate, permit } = this;
    if (gate !== undefined && permit !== undefined && !gate.isCurrent(permit, nowMs)) {
      gate.release(permit, nowMs);
      this.permit = undefined;
      const again = gate.admit(nowMs);
      if (!(again instanceof Permit)) {
        this.giveBack(nowMs);
        this.refuse(again, breakerName(gate, nowMs), nowMs);
        return;
      }
      this.permit = again;
    }
    this.launch(nowMs);
  }

  /** The timer's. */
  due(nowMs: number): void {
    switch (this.phase) {
      case 'queued':
        this.waitedTooLong(nowMs);
        return;
      case 'running':
        this.timedOut(nowMs);
        return;
      case 'backing-off':
        this.attempt(nowMs);
        return;
      case 'falling-back':
        this.fallback?.timedOut(nowMs);
        return;
      case 'idle':
      case 'done':
        return;
    }
  }

  private attempt(nowMs: number): void {
    if (nowMs >= this.endMs) {
      this.refuse({ reason: 'deadline', retryAfterMs: undefined }, 'nothing is left of the deadline', nowMs);
      return;
    }
    this.gate = this.shared.gateFor(this.task.request, nowMs);
    if (this.gate !== undefined) {
      const answer = this.gate.admit(nowMs);
      if (!(answer instanceof Permit)) {
        this.refuse(answer, breakerName(this.gate, nowMs), nowMs);
        return;
      }
      this.permit = answer;
    }
    this.enterBulkhead(nowMs);
  }

  private enterBulkhead(nowMs: number): void {
    const { bulkhead } = this.shared;
    if (!bulkhead.free && this.overloaded()) {
      this.giveBack(nowMs);
      this.overloadTried = true;
      this.simplifyFirst(nowMs);
      return;
    }
    switch (bulkhead.acquire(this)) {
      case 'taken':
        this.holdsSlot = true;
        this.launch(nowMs);
        return;
      case 'queued': {
        this.phase = 'queued';
        const maxWaitMs = this.policy.settings.bulkhead?.maxWaitMs ?? 0;
        this.shared.timer.start(this, Math.min(nowMs + maxWaitMs, this.endMs));
        this.heedAbort();
        return;
      }
      case 'full':
        this.giveBack(nowMs);
        this.refuse(
          { reason: 'bulkhead-full', retryAfterMs: undefined },
          this.shared.bulkhead.numbers(),
          nowMs,
        );
    }
  }

  private overloaded(): boolean {
    const { simplified } = this.policy;
    if (simplified === undefined || this.overloadTried || this.permit?.probe === true) return false;
    return (
      this.task.adapter.simplified !== undefined && this.shared.bulkhead.waiting >= simplified.whenQueued
    );
  }

  private launch(nowMs: number): void {
    if (nowMs >= this.endMs) {
      this.giveBack(nowMs);
      this.refuse({ reason: 'deadline', retryAfterMs: undefined }, 'nothing is left of the deadline', nowMs);
      return;
    }
    const { totals, timer, budget } = this.shared;
    this.attempts += 1;
    totals.attempts += 1;
    if (this.attempts === 1) budget?.firstAttempt(nowMs);
    else totals.retries += 1;
    this.reserved = false;
    const attempt = planAttempt(this, this.attempts, nowMs);
    this.current = attempt;
    this.phase = 'running';
    timer.start(this, nowMs + attempt.timeoutMs);
    try {
      asPromise(this.task.run(attempt)).then(
        (value) => this.answered(attempt, value),
        (error: unknown) => this.threw(attempt, error),
      );
    } catch (error) {
      this.threw(attempt, error);
    }
    if (this.onAbort !== undefined) this.heedAbort();
  }

  private answered(attempt: RunningAttempt, value: T): void {
    if (attempt.over) return;
    this.judged(attempt, value, judgeAnswer(this.shared, this.task.adapter, value));
  }

  /** The attempt was answered, and its answer judged. */
  judged(attempt: RunningAttempt, value: T, judgement: Judgement): void {
    // The judge itself may have aborted the call.
    if (attempt.over) return;
    attempt.over = true;
    const classified = classifyAnswer(judgement, this.policy.settings.failures);
    const nowMs = this.shared.host.nowMs();
    this.endAttempt(attempt, classified, nowMs);
    const { meaning } = classified;
    if (meaning === 'ok' || meaning === 'refused') {
      this.remember(attempt, { meaning, judgement, nowMs }, value);
      this.shared.totals.fresh += 1;
      this.finish({ kind: 'fresh', value, attempts: this.attempts, policy: this.policy.label });
      return;
    }
    this.failed(this.failure(value, undefined), { judgement, meaning }, nowMs);
  }

  private remember(
    { startedMs }: RunningAttempt,
    end: Pick<RememberedEnd, 'meaning' | 'judgement' | 'nowMs'>,
    value: T | undefined,
  ): void {
    const { cacheKey } = this.task.request;
    rememberAnswer(this.shared.cache, { cacheKey, startedMs, ...end }, value);
  }

  /** The attempt ended with an error. */
  threw(attempt: RunningAttempt, error: unknown): void {
    if (attempt.over) return;
    const judgement = judgeThrown(this.shared, this.task.adapter, error);
    // The judge itself may have aborted the call.
    if (attempt.over) return;
    attempt.over = true;
    const classified = classify({ how: 'threw', judgement }, this.policy.settings.failures);
    const nowMs = this.shared.host.nowMs();
    this.endAttempt(attempt, classified, nowMs);
    const { meaning } = classified;
    // An error is no answer to remember, whatever status it names.
    if (meaning === 'refused') this.remember(attempt, { meaning, judgement, nowMs }, undefined);
    this.failed(this.failure(undefined, error), { judgement, meaning }, nowMs);
  }

  private timedOut(nowMs: number): void {
    const attempt = this.current;
    if (attempt === undefined || attempt.over) return;
    const error = new AttemptTimeoutError(attempt.timeoutMs);
    // Before the attempt is torn down: that ends a hold too.
    const tookMs = nowMs - attempt.startedMs;
    const held = isHeldUp(callerHold(this.shared, this.task.adapter), tookMs);
    attempt.abort(error);
    const full = attempt.full && !held && !wasStalled(this.shared.timer, tookMs);
    const classified = classify(
      held ? { how: 'held-up' } : { how: 'timed-out', full },
      this.policy.settings.failures,
    );
    this.endAttempt(attempt, classified, nowMs);
    this.shared.totals.timeouts += 1;
    const { operation } = this.task.request;
    this.shared.emit({ type: 'timeout', operation, timeoutMs: attempt.timeoutMs, full });
    const cause: Failed<T> = { ...this.failure(undefined, error), timedOut: true };
    this.failed(cause, { judgement: undefined, meaning: classified.meaning }, nowMs);
  }

  /** The attempt was made and is over: its permit is completed, its slot goes on, in this order. */
  private endAttempt(attempt: RunningAttempt, classified: Classified, nowMs: number): void {
    const { timer, bulkhead } = this.shared;
    timer.cancel(this);
    this.current = undefined;
    this.phase = 'idle';
    const { permit } = this;
    if (permit !== undefined || bulkhead.adapts) {
      this.permit = undefined;
      const { heldMs } = callerHold(this.shared, this.task.adapter);
      const durationMs = Math.max(0, nowMs - attempt.startedMs - heldMs);
      const { kind, overload } = classified;
      if (permit !== undefined) this.gate?.complete(permit, { kind, durationMs }, nowMs);
      if (bulkhead.adapts) bulkhead.sample({ durationMs, kind: overload ? 'failure' : kind }, nowMs);
    }
    this.holdsSlot = false;
    bulkhead.release();
  }

  private failed(
    cause: Failed<T>,
    end: { readonly judgement: Judgement | undefined; readonly meaning: Classified['meaning'] },
    nowMs: number,
  ): void {
    if (end.meaning === 'cancelled') {
      this.shared.totals.cancelled += 1;
      this.finish({ ...cause, cancelled: true });
      return;
    }
    if (end.meaning === 'refused') {
      this.shared.totals.failed += 1;
      this.finish(cause);
      return;
    }
    const reason = cause.timedOut ? 'timeout' : 'failure';
    const { request } = this.task;
    const { attempts, endMs, gate } = this;
    const spent = spentBy(this.shared, this.task.adapter);
    const ended = { request, attempts, judgement: end.judgement, spent, endMs, gate };
    const retry = decideRetry(this.shared, this.policy, ended, nowMs);
    if (retry.then === 'wait') {
      this.lastFailure = { cause, reason };
      this.reserved = this.shared.budget !== undefined;
      this.phase = 'backing-off';
      this.shared.timer.start(this, nowMs + retry.waitMs);
      this.heedAbort();
      return;
    }
    const last = { ...cause, retriesExhausted: retry.then === 'exhausted' };
    if (spent === 'delivered') this.finishFailed(last);
    else this.fallBack(last, reason, nowMs);
  }

  /** This attempt may not be made. After an attempt that was, its answer is the call's, not a new error. */
  private refuse(refusal: Refusal, detail: string, nowMs: number): void {
    this.phase = 'idle';
    if (this.reserved) {
      this.reserved = false;
      this.shared.budget?.giveBack(nowMs);
    }
    const { operation } = this.task.request;
    if (this.lastFailure !== undefined) {
      this.shared.emit({ type: 'retry-stopped', operation, why: whyStopped(refusal) });
      this.fallBack(this.lastFailure.cause, this.lastFailure.reason, nowMs);
      return;
    }
    const { reason } = refusal;
    this.shared.totals.rejected[reason] += 1;
    this.shared.emit({ type: 'rejected', operation, key: this.gate?.key, reason, detail });
    this.fallBack(this.rejected(refusal, detail), reason, nowMs);
  }

  private waitedTooLong(nowMs: number): void {
    this.shared.bulkhead.cancel(this);
    this.giveBack(nowMs);
    this.refuse(
      { reason: 'bulkhead-timeout', retryAfterMs: undefined },
      this.shared.bulkhead.numbers(),
      nowMs,
    );
  }

  /** Gives back what was taken for an attempt that is not made. */
  private giveBack(nowMs: number): void {
    const { permit, gate, holdsSlot } = this;
    this.permit = undefined;
    this.holdsSlot = false;
    if (permit !== undefined) gate?.release(permit, nowMs);
    if (holdsSlot) this.shared.bulkhead.release();
  }

  private heedAbort(): void {
    const { signal } = this.task.request;
    if (signal?.aborted === true) this.cancelled(signal.reason);
  }

  private cancelled(reason: unknown): void {
    const nowMs = this.shared.host.nowMs();
    switch (this.phase) {
      case 'queued':
        this.shared.bulkhead.cancel(this);
        this.giveBack(nowMs);
        break;
      case 'running':
        if (this.current !== undefined) {
          const attempt = this.current;
          attempt.abort(reason);
          this.endAttempt(attempt, classify({ how: 'cancelled' }, this.policy.settings.failures), nowMs);
        }
        break;
      case 'backing-off':
        if (this.reserved) this.shared.budget?.giveBack(nowMs);
        this.reserved = false;
        break;
      case 'falling-back':
        this.fallback?.cancel(reason, nowMs);
        break;
      case 'idle':
      // Between two phases (a callback aborted it): the next phase looks again.
      case 'done':
        return;
    }
    this.shared.timer.cancel(this);
    this.finishCancelled(reason);
  }

  private finishCancelled(reason: unknown): void {
    this.shared.totals.cancelled += 1;
    this.finish({ ...this.failure(undefined, reason), cancelled: true });
  }

  private fallBack(cause: CallFailure<T>, reason: DegradedReason, nowMs: number): void {
    if (this.policy.settings.fallbacks.length === 0 && this.task.adapter.fallback === undefined) {
      this.finishFailed(cause);
      return;
    }
    this.startFallback({ cause, reason }, 'all', nowMs);
  }

  /** Overload: the simplified answer before the queue; when it fails, the queue after all. */
  private simplifyFirst(nowMs: number): void {
    const reason = 'bulkhead-full';
    const cause = this.rejected({ reason, retryAfterMs: undefined }, this.shared.bulkhead.numbers());
    this.startFallback({ cause, reason }, 'simplified', nowMs);
  }

  private startFallback(
    why: { readonly cause: CallFailure<T>; readonly reason: DegradedReason },
    which: 'all' | 'simplified',
    nowMs: number,
  ): void {
    this.phase = 'falling-back';
    const { shared, policy, task, endMs, cutByCaller } = this;
    this.fallback = new FallbackRun({
      shared,
      policy,
      task,
      endMs,
      cutByCaller,
      ...why,
      which,
      // A drill forces the dependency off, whatever operation of it.
      skipSimplified: which === 'all' && (this.overloadTried || why.reason === 'drill'),
      timer: this,
      done: (result) => {
        this.fallback = undefined;
        if (result !== undefined) this.finishDegraded(result);
        else if (which === 'all') this.finishFailed(why.cause);
        else this.attempt(shared.host.nowMs());
      },
    });
    this.fallback.next(nowMs);
    this.heedAbort();
  }

  private servedWhileRefreshing(nowMs: number): boolean {
    const { cache } = this.shared;
    const { cacheKey } = this.task.request;
    if (cache === undefined || cacheKey === undefined) return false;
    const turn = cache.beginRefresh(cacheKey, this, nowMs);
    this.refreshing = turn === 'mine';
    const held = turn === 'other' ? cache.find(cacheKey, nowMs) : undefined;
    if (held === undefined) return false;
    this.finishDegraded(refreshingCall(held, this.policy.label));
    return true;
  }

  private finishDegraded(result: CallResult<T> & { kind: 'degraded' }): void {
    const { operation } = this.task.request;
    const { mode, reason, ageMs } = result;
    this.shared.totals.degraded[mode] += 1;
    this.shared.emit({ type: 'degraded', operation, key: this.gate?.key, mode, reason, ageMs });
    this.finish(result);
  }

  private finishFailed(cause: CallFailure<T>): void {
    if (cause.kind === 'failed') this.shared.totals.failed += 1;
    this.finish(cause);
  }

  private finish(result: CallResult<T>): void {
    this.phase = 'done';
    const { signal, cacheKey } = this.task.request;
    if (this.onAbort !== undefined) signal?.removeEventListener('abort', this.onAbort);
    if (this.refreshing && cacheKey !== undefined) this.shared.cache?.endRefresh(cacheKey, this);
    this.task.settle(result);
  }

  private rejected(refusal: Refusal, detail: string): CallFailure<T> {
    return rejectedCall(refusal, { detail, attempts: this.attempts, policy: this.policy.label });
  }

  private failure(value: T | undefined, error: unknown): Failed<T> {
    return failedCall({ value, error }, { attempts: this.attempts, policy: this.policy.label });
  }
}
