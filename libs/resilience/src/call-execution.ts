import { AttemptRun, AttemptTimeoutError } from './attempt-run.js';
import { backoffMs, retryWaitMs } from './backoff.js';
import type { BreakerGate } from './breaker-gate.js';
import type { Waiter } from './bulkhead.js';
import type { CallFailure, CallResult, DegradedReason, Judgement } from './call.js';
import type { CallTask } from './call-task.js';
import { type Classified, classify } from './classify.js';
import { type CompiledPolicy, isRetryable } from './compiled-policy.js';
import { FallbackRun } from './fallback-run.js';
import type { GuardShared } from './guard-shared.js';
import { Permit, type Refusal } from './permit.js';
import { WheelEntry } from './timer-wheel.js';

/** What the one timer of the call is for now. */
type Phase = 'idle' | 'queued' | 'running' | 'backing-off' | 'falling-back' | 'done';

const SILENT: Judgement = {};

/**
 * One logical call on its way: deadline → fallback( retry( breaker → bulkhead → attempt timeout → call ) ).
 *
 * Everything taken is held in one place and given back in one place: `permit` and `holdsSlot` by `giveBack` when the attempt
 * was not made, by `endAttempt` when it was; `reserved` (a retry counted by the budget) when that retry is not made.
 */
export class CallExecution<T> extends WheelEntry implements Waiter {
  nextWaiter: Waiter | undefined = undefined;
  previousWaiter: Waiter | undefined = undefined;
  queued = false;

  private phase: Phase = 'idle';
  private attempts = 0;
  private readonly policy: CompiledPolicy;
  private readonly startedMs: number;
  private readonly policyEndMs: number;
  private readonly endMs: number;
  private gate: BreakerGate | undefined;
  private permit: Permit | undefined;
  private holdsSlot = false;
  private reserved = false;
  private current: AttemptRun | undefined;
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
  ) {
    super();
    this.policy = shared.policy;
    this.startedMs = nowMs;
    this.policyEndMs = nowMs + this.policy.settings.timeout.totalMs;
    const { deadlineMs } = task.request;
    // NaN is no deadline; a negative one has passed.
    this.endMs =
      deadlineMs === undefined || Number.isNaN(deadlineMs)
        ? this.policyEndMs
        : Math.min(this.policyEndMs, nowMs + deadlineMs);
  }

  begin(): void {
    const { signal } = this.task.request;
    if (signal !== undefined) {
      if (signal.aborted) {
        this.finishCancelled(signal.reason);
        return;
      }
      this.onAbort = () => this.cancelled(signal.reason);
      signal.addEventListener('abort', this.onAbort, { once: true });
    }
    if (this.policy.lastGood !== undefined && this.servedWhileRefreshing()) return;
    this.attempt(this.startedMs);
  }

  /** Rejects the call before anything is asked: a drill. */
  reject(refusal: Refusal): void {
    this.refuse(refusal, 'forced by a drill');
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
        this.refuse(again, 'the breaker changed while this call waited');
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
      this.refuse({ reason: 'deadline', retryAfterMs: undefined }, 'nothing is left of the deadline');
      return;
    }
    this.gate = this.shared.gateFor(this.task.request, nowMs);
    if (this.gate !== undefined) {
      const answer = this.gate.admit(nowMs);
      if (!(answer instanceof Permit)) {
        this.refuse(answer, `breaker ${this.gate.key}`);
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
        return;
      }
      case 'full':
        this.giveBack(nowMs);
        this.refuse({ reason: 'bulkhead-full', retryAfterMs: undefined }, this.bulkheadNumbers());
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
      this.refuse({ reason: 'deadline', retryAfterMs: undefined }, 'nothing is left of the deadline');
      return;
    }
    const { totals, timer, budget } = this.shared;
    this.attempts += 1;
    totals.attempts += 1;
    if (this.attempts === 1) budget?.firstAttempt(nowMs);
    else totals.retries += 1;
    this.reserved = false;
    const attempt = this.newAttempt(nowMs);
    this.current = attempt;
    this.phase = 'running';
    timer.start(this, nowMs + attempt.timeoutMs);
    try {
      this.task.run(attempt).then(
        (value) => this.answered(attempt, value),
        (error: unknown) => this.threw(attempt, error),
      );
    } catch (error) {
      this.threw(attempt, error);
    }
  }

  /**
   * An attempt is full when it has its policy timeout: `timeout.attempt`, or without one what is left of the policy's
   * total; a probe's is at most `probe.timeout`. A fleet permit runs from receipt, so that a call finds less of it
   * left: half of the timeout is enough there, or a hanging dependency would never fail a probe.
   */
  private newAttempt(nowMs: number): AttemptRun {
    const { timeout, breaker } = this.policy.settings;
    const { permit } = this;
    const probe = permit?.probe === true;
    let wantedMs = timeout.attemptMs ?? this.policyEndMs - nowMs;
    if (probe && breaker !== undefined) wantedMs = Math.min(wantedMs, breaker.probe.timeoutMs);
    let timeoutMs = Math.min(wantedMs, this.endMs - nowMs);
    let full = timeoutMs >= wantedMs;
    if (permit?.source === 'fleet-probe' && permit.deadlineMs - nowMs < timeoutMs) {
      timeoutMs = permit.deadlineMs - nowMs;
      full = full && timeoutMs >= wantedMs / 2;
    }
    return new AttemptRun({ number: this.attempts, timeoutMs, probe, startedMs: nowMs, full });
  }

  private answered(attempt: AttemptRun, value: T): void {
    if (attempt.over) return;
    attempt.over = true;
    const judgement = this.judge(value);
    const classified = classify({ how: 'answered', judgement }, this.policy.settings.failures);
    const nowMs = this.shared.host.nowMs();
    this.endAttempt(attempt, classified, nowMs);
    const { cacheKey } = this.task.request;
    if (classified.meaning === 'ok' || classified.meaning === 'refused') {
      if (cacheKey !== undefined && this.shared.cache !== undefined) {
        const { startedMs } = attempt;
        if (classified.meaning === 'refused') this.shared.cache.drop(cacheKey, startedMs);
        else if (judgement.keep !== false) this.shared.cache.store(cacheKey, value, { startedMs, nowMs });
      }
      this.shared.totals.fresh += 1;
      this.finish({ kind: 'fresh', value, attempts: this.attempts, policy: this.policy.label });
      return;
    }
    this.failed(this.failure(value, undefined), { judgement, meaning: classified.meaning }, nowMs);
  }

  private threw(attempt: AttemptRun, error: unknown): void {
    if (attempt.over) return;
    attempt.over = true;
    const judgement = this.judgeError(error);
    const classified = classify({ how: 'threw', judgement }, this.policy.settings.failures);
    const nowMs = this.shared.host.nowMs();
    this.endAttempt(attempt, classified, nowMs);
    const { cacheKey } = this.task.request;
    if (classified.meaning === 'refused' && cacheKey !== undefined) {
      this.shared.cache?.drop(cacheKey, attempt.startedMs);
    }
    this.failed(this.failure(undefined, error), { judgement, meaning: classified.meaning }, nowMs);
  }

  private timedOut(nowMs: number): void {
    const attempt = this.current;
    if (attempt === undefined || attempt.over) return;
    const error = new AttemptTimeoutError(attempt.timeoutMs);
    attempt.abort(error);
    const classified = classify({ how: 'timed-out', full: attempt.full }, this.policy.settings.failures);
    this.endAttempt(attempt, classified, nowMs);
    this.shared.totals.timeouts += 1;
    const { operation } = this.task.request;
    this.shared.emit({ type: 'timeout', operation, timeoutMs: attempt.timeoutMs, full: attempt.full });
    const cause: Failed<T> = { ...this.failure(undefined, error), timedOut: true };
    this.failed(cause, { judgement: undefined, meaning: classified.meaning }, nowMs);
  }

  /** The attempt was made and is over: its permit is completed, its slot goes on, in this order. */
  private endAttempt(attempt: AttemptRun, classified: Classified, nowMs: number): void {
    const { timer, bulkhead } = this.shared;
    timer.cancel(this);
    this.current = undefined;
    this.phase = 'idle';
    const { permit } = this;
    if (permit !== undefined) {
      this.permit = undefined;
      this.gate?.complete(permit, { kind: classified.kind, durationMs: nowMs - attempt.startedMs }, nowMs);
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
    const stopped = this.retry(cause, end.judgement, nowMs);
    if (stopped === 'retrying') {
      this.lastFailure = { cause, reason };
      return;
    }
    const retriesExhausted = stopped === 'exhausted' || end.judgement?.noRetry === true;
    this.fallBack(retriesExhausted ? { ...cause, retriesExhausted } : cause, reason, nowMs);
  }

  /** Starts the next attempt's wait, if there is to be one. `exhausted`: the layer above must not retry either. */
  private retry(
    cause: Failed<T>,
    judgement: Judgement | undefined,
    nowMs: number,
  ): 'retrying' | 'exhausted' | 'no' {
    const { shared, policy, task } = this;
    const retry = policy.retryFor(task.request);
    if (retry === undefined || !isRetryable(retry, { judgement, timedOut: cause.timedOut })) return 'no';
    if (this.attempts >= retry.maxAttempts) return retry.maxAttempts > 1 ? 'exhausted' : 'no';
    const { operation } = task.request;
    if (this.gate?.wouldRefuse(nowMs) === true) {
      shared.emit({ type: 'retry-stopped', operation, why: 'breaker' });
      return 'no';
    }
    const backoff = backoffMs(this.attempts, retry.backoff, shared.host.random());
    const waitMs = retryWaitMs(backoff, judgement?.retryAfterMs);
    if (nowMs + waitMs >= this.endMs) {
      shared.emit({ type: 'retry-stopped', operation, why: 'deadline' });
      return 'no';
    }
    if (shared.budget?.reserve(nowMs) === false) {
      shared.totals.retriesRefused += 1;
      shared.emit({ type: 'retry-stopped', operation, why: 'budget' });
      return 'exhausted';
    }
    this.reserved = shared.budget !== undefined;
    shared.emit({ type: 'retry', operation, attempt: this.attempts + 1, waitMs });
    this.phase = 'backing-off';
    shared.timer.start(this, nowMs + waitMs);
    return 'retrying';
  }

  /** This attempt may not be made. After an attempt that was, its answer is the call's, not a new error. */
  private refuse(refusal: Refusal, detail: string): void {
    const nowMs = this.shared.host.nowMs();
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
    const { reason, retryAfterMs } = refusal;
    this.shared.totals.rejected[reason] += 1;
    this.shared.emit({ type: 'rejected', operation, key: this.gate?.key, reason, detail });
    const { label } = this.policy;
    this.fallBack(
      { kind: 'rejected', reason, retryAfterMs, detail, attempts: this.attempts, policy: label },
      reason,
      nowMs,
    );
  }

  private waitedTooLong(nowMs: number): void {
    this.shared.bulkhead.cancel(this);
    this.giveBack(nowMs);
    this.refuse({ reason: 'bulkhead-timeout', retryAfterMs: undefined }, this.bulkheadNumbers());
  }

  /** Gives back what was taken for an attempt that is not made. */
  private giveBack(nowMs: number): void {
    const { permit, gate, holdsSlot } = this;
    this.permit = undefined;
    this.holdsSlot = false;
    if (permit !== undefined) gate?.release(permit, nowMs);
    if (holdsSlot) this.shared.bulkhead.release();
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
        break;
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
    if (this.policy.settings.fallbacks.length === 0) {
      this.finishFailed(cause);
      return;
    }
    this.startFallback({ cause, reason }, 'all', nowMs);
  }

  /** Overload: the simplified answer before the queue; when it fails, the queue after all. */
  private simplifyFirst(nowMs: number): void {
    const cause: CallFailure<T> = {
      kind: 'rejected',
      reason: 'bulkhead-full',
      retryAfterMs: undefined,
      detail: this.bulkheadNumbers(),
      attempts: this.attempts,
      policy: this.policy.label,
    };
    this.startFallback({ cause, reason: 'bulkhead-full' }, 'simplified', nowMs);
  }

  private startFallback(
    why: { readonly cause: CallFailure<T>; readonly reason: DegradedReason },
    which: 'all' | 'simplified',
    nowMs: number,
  ): void {
    this.phase = 'falling-back';
    const { shared, policy, task, endMs } = this;
    this.fallback = new FallbackRun({
      shared,
      policy,
      task,
      endMs,
      ...why,
      which,
      skipSimplified: this.overloadTried && which === 'all',
      timer: this,
      done: (result) => {
        this.fallback = undefined;
        if (result !== undefined) this.finishDegraded(result);
        else if (which === 'all') this.finishFailed(why.cause);
        else this.attempt(shared.host.nowMs());
      },
    });
    this.fallback.next(nowMs);
  }

  private servedWhileRefreshing(): boolean {
    const { cache } = this.shared;
    const { cacheKey } = this.task.request;
    if (cache === undefined || cacheKey === undefined) return false;
    const turn = cache.beginRefresh(cacheKey, this, this.startedMs);
    this.refreshing = turn === 'mine';
    const held = turn === 'other' ? cache.find(cacheKey, this.startedMs) : undefined;
    if (held === undefined) return false;
    this.finishDegraded({
      kind: 'degraded',
      mode: 'last-good',
      value: held.value as T,
      fixed: undefined,
      ageMs: held.ageMs,
      reason: 'refreshing',
      cause: this.failure(undefined, undefined),
      attempts: 0,
      policy: this.policy.label,
    });
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

  private failure(value: T | undefined, error: unknown): Failed<T> {
    return {
      kind: 'failed',
      value,
      error,
      timedOut: false,
      cancelled: false,
      attempts: this.attempts,
      retriesExhausted: false,
      policy: this.policy.label,
    };
  }

  private judge(value: T): Judgement {
    try {
      return this.task.adapter.judge(value);
    } catch (error) {
      this.shared.callbackFailed('judge', error);
      return { ignore: true };
    }
  }

  private judgeError(thrown: unknown): Judgement {
    try {
      return this.task.adapter.judgeError(thrown);
    } catch (error) {
      this.shared.callbackFailed('judgeError', error);
      return SILENT;
    }
  }

  private bulkheadNumbers(): string {
    const { bulkhead } = this.policy.settings;
    const { inFlight, waiting } = this.shared.bulkhead;
    return `in flight ${inFlight} of ${bulkhead?.maxConcurrent ?? 0}, waiting ${waiting} of ${bulkhead?.maxQueued ?? 0}`;
  }
}

type Failed<T> = CallFailure<T> & { kind: 'failed' };

function whyStopped(refusal: Refusal): 'breaker' | 'bulkhead' | 'deadline' {
  if (refusal.reason === 'deadline') return 'deadline';
  return refusal.reason.startsWith('bulkhead') ? 'bulkhead' : 'breaker';
}
