import { planAttempt } from './attempt-plan.js';
import { asPromise } from './as-promise.js';
import { AttemptRun, AttemptTimeoutError } from './attempt-run.js';
import type { BreakerGate } from './breaker-gate.js';
import type { CallFailure, CallRequest, CallResult, DegradedReason } from './call.js';
import type { CallTask } from './call-task.js';
import { classify } from './classify.js';
import type { CompiledPolicy } from './compiled-policy.js';
import type { GuardShared } from './guard-shared.js';
import { judgeAnswer, judgeThrown, wasStalled } from './judging.js';
import { Permit } from './permit.js';
import type { FallbackSettings } from './settings.js';
import type { WheelEntry } from './timer-wheel.js';

type Degraded<T> = CallResult<T> & { kind: 'degraded' };

export interface FallbackTask<T> {
  readonly shared: GuardShared;
  readonly policy: CompiledPolicy;
  readonly task: CallTask<T>;
  readonly endMs: number;
  /** That end is the caller's deadline. */
  readonly cutByCaller: boolean;
  readonly cause: CallFailure<T>;
  readonly reason: DegradedReason;
  /** `simplified`: that one alone, under overload. */
  readonly which: 'all' | 'simplified';
  readonly skipSimplified: boolean;
  /** The call's own timer entry. */
  readonly timer: WheelEntry;
  /** Called once; undefined = none of them had an answer. */
  readonly done: (result: Degraded<T> | undefined) => void;
}

/** A caller's own stand-in has at least so long, also when the call's time is used up: it has an end in any case. */
const FUNCTION_MIN_MS = 100;

/**
 * The fallbacks of one call, tried in order, the caller's own function last. One that fails is passed over and reported; the original cause stays what
 * it was. A simplified call takes no slot of the bulkhead (it is there for when that is full), but asks the breaker
 * of its own operation: a fallback never uses the resource that failed.
 */
export class FallbackRun<T> {
  private index = 0;
  private over = false;
  private mode: 'simplified' | 'function' = 'simplified';
  private attempt: AttemptRun | undefined;
  private gate: BreakerGate | undefined;
  private permit: Permit | undefined;

  constructor(private readonly with_: FallbackTask<T>) {}

  next(nowMs: number): void {
    while (!this.over) {
      const fallback = this.with_.policy.settings.fallbacks[this.index];
      this.index += 1;
      if (fallback === undefined) {
        if (!this.startFunction(nowMs)) this.finish(undefined);
        return;
      }
      const answer = this.tryOne(fallback, nowMs);
      if (answer === 'started') return;
      if (answer !== undefined) this.finish(answer);
    }
  }

  timedOut(nowMs: number): void {
    const { attempt } = this;
    if (attempt === undefined) return;
    const error = new AttemptTimeoutError(attempt.timeoutMs);
    attempt.abort(error);
    const full = attempt.full && !wasStalled(this.with_.shared.timer, nowMs - attempt.startedMs);
    this.end(attempt, { how: 'timed-out', full }, nowMs);
    this.passOver(error, nowMs);
  }

  /** The caller is gone: nothing more is tried, and `done` is not called. */
  cancel(reason: unknown, nowMs: number): void {
    this.over = true;
    const { attempt } = this;
    if (attempt === undefined) return;
    attempt.abort(reason);
    this.end(attempt, { how: 'cancelled' }, nowMs);
  }

  private tryOne(fallback: FallbackSettings, nowMs: number): Degraded<T> | 'started' | undefined {
    const { which, skipSimplified } = this.with_;
    switch (fallback.kind) {
      case 'last-good':
        return which === 'all' ? this.lastGood(nowMs) : undefined;
      case 'static': {
        if (which !== 'all' || this.with_.task.adapter.makesStatic === false) return undefined;
        const { status, body, contentType } = fallback;
        return { ...this.degraded('static'), fixed: { status, body, contentType } };
      }
      case 'simplified':
        return !skipSimplified && this.startSimplified(fallback.operation, nowMs) ? 'started' : undefined;
    }
  }

  private lastGood(nowMs: number): Degraded<T> | undefined {
    const { cacheKey } = this.with_.task.request;
    const held = cacheKey === undefined ? undefined : this.with_.shared.cache?.find(cacheKey, nowMs);
    // The key is the adapter's and names everything the answer depends on, its type included.
    return held && { ...this.degraded('last-good'), value: held.value as T, ageMs: held.ageMs };
  }

  private startSimplified(operation: string, nowMs: number): boolean {
    const { shared, policy, task, endMs, cutByCaller, timer } = this.with_;
    const { adapter } = task;
    if (adapter.simplified === undefined || nowMs >= endMs) return false;
    const request: CallRequest = { ...task.request, operation };
    this.gate = shared.gateFor(request, nowMs);
    const permit = this.gate?.admit(nowMs);
    if (permit !== undefined && !(permit instanceof Permit)) return false;
    this.permit = permit;
    const attempt = planAttempt({ policy, permit, endMs, cutByCaller }, 1, nowMs);
    this.attempt = attempt;
    this.mode = 'simplified';
    shared.timer.start(timer, nowMs + attempt.timeoutMs);
    try {
      asPromise(adapter.simplified(operation, request, attempt)).then(
        (value) => this.answered(attempt, value),
        (error: unknown) => this.threw(attempt, error),
      );
    } catch (error) {
      // Not from within `next`: its loop goes on by itself.
      this.attemptThrew(attempt, error);
      return false;
    }
    return true;
  }

  /** False = there is none, or it is over already. */
  private startFunction(nowMs: number): boolean {
    const { shared, policy, task, endMs, timer, cause, reason, which } = this.with_;
    const { adapter } = task;
    // Twice asked = it was asked and had nothing.
    if (adapter.fallback === undefined || which !== 'all' || this.mode === 'function') return false;
    if (policy.settings.contract === 'required') return false;
    this.mode = 'function';
    const attempt = new AttemptRun(1, nowMs);
    attempt.timeoutMs = Math.max(FUNCTION_MIN_MS, endMs - nowMs);
    this.attempt = attempt;
    shared.timer.start(timer, nowMs + attempt.timeoutMs);
    try {
      asPromise(adapter.fallback(cause, reason)).then(
        (value) => this.stoodIn(attempt, value),
        (error: unknown) => this.stoodDown(attempt, error),
      );
    } catch (error) {
      this.stoodDown(attempt, error);
    }
    return true;
  }

  private stoodIn(attempt: AttemptRun, value: T): void {
    if (attempt.over) return;
    attempt.over = true;
    this.with_.shared.timer.cancel(this.with_.timer);
    this.attempt = undefined;
    this.finish({ ...this.degraded('function'), value });
  }

  private stoodDown(attempt: AttemptRun, error: unknown): void {
    if (attempt.over) return;
    attempt.over = true;
    this.with_.shared.timer.cancel(this.with_.timer);
    this.attempt = undefined;
    this.report(error);
    this.finish(undefined);
  }

  private answered(attempt: AttemptRun, value: T): void {
    if (attempt.over) return;
    const { shared, task } = this.with_;
    const judgement = judgeAnswer(shared, task.adapter, value);
    // The judge itself may have aborted the call.
    if (attempt.over) return;
    attempt.over = true;
    const nowMs = shared.host.nowMs();
    const meaning = this.end(attempt, { how: 'answered', judgement }, nowMs);
    if (meaning === 'ok') this.finish({ ...this.degraded('simplified'), value });
    else this.passOver(new Error('the simplified call was not answered in full'), nowMs);
  }

  private threw(attempt: AttemptRun, error: unknown): void {
    if (attempt.over) return;
    this.attemptThrew(attempt, error);
    this.next(this.with_.shared.host.nowMs());
  }

  private attemptThrew(attempt: AttemptRun, thrown: unknown): void {
    const { shared, task } = this.with_;
    const judgement = judgeThrown(shared, task.adapter, thrown);
    if (attempt.over) return;
    attempt.over = true;
    this.end(attempt, { how: 'threw', judgement }, shared.host.nowMs());
    this.report(thrown);
  }

  private finish(result: Degraded<T> | undefined): void {
    if (this.over) return;
    this.over = true;
    this.with_.done(result);
  }

  private end(attempt: AttemptRun, how: Parameters<typeof classify>[0], nowMs: number): string {
    const { shared, policy, timer } = this.with_;
    shared.timer.cancel(timer);
    this.attempt = undefined;
    const { kind, meaning } = classify(how, policy.settings.failures);
    const { permit } = this;
    this.permit = undefined;
    if (permit !== undefined) {
      this.gate?.complete(permit, { kind, durationMs: nowMs - attempt.startedMs }, nowMs);
    }
    return meaning;
  }

  private passOver(error: unknown, nowMs: number): void {
    this.report(error);
    this.next(nowMs);
  }

  private report(error: unknown): void {
    const { operation } = this.with_.task.request;
    this.with_.shared.emit({ type: 'fallback-failed', operation, mode: this.mode, error });
  }

  private degraded(mode: Degraded<T>['mode']): Degraded<T> {
    const { reason, cause, policy } = this.with_;
    return {
      kind: 'degraded',
      mode,
      value: undefined,
      fixed: undefined,
      ageMs: 0,
      reason,
      cause,
      attempts: cause.attempts,
      policy: policy.label,
    };
  }
}
