import { asPromise } from './as-promise.js';
import { Abortable, type RunningAttempt } from './attempt-run.js';
import type { BreakerGate } from './breaker-gate.js';
import type { CallAdapter, CallRequest, CallResult, Judgement, ValueAdapter } from './call.js';
import { CallExecution } from './call-execution.js';
import { concluded } from './call-results.js';
import type { CallWork } from './call-task.js';
import { classifyAnswer } from './classify.js';
import type { CompiledPolicy } from './compiled-policy.js';
import { enterDirectly, mayBeDirect } from './direct-entry.js';
import type { GuardShared } from './guard-shared.js';
import { TICK_MS } from './host.js';
import { judgeAnswer } from './judging.js';
import type { WheelEntry } from './timer-wheel.js';

type Ending<T> = CallResult<T> | T | Promise<CallResult<T> | T>;

/**
 * Makes a call at once when nothing stands in its way: its breaker is closed, a slot is free, nobody listens for its
 * cancellation, no remembered answer has a part in it. Undefined = something does, and nothing was taken or counted.
 */
export function beginDirectly<T>(
  shared: GuardShared,
  request: CallRequest,
  adapter: CallAdapter<T>,
): DirectCall<T> | undefined {
  if (!mayBeDirect(shared, request, adapter)) return undefined;
  const { policy, host } = shared;
  const { deadlineMs } = request;
  const precise =
    policy.precise || policy.attemptMs === Infinity || deadlineMs !== undefined || host.ticker === undefined;
  const nowMs = precise ? host.nowMs() : host.ticker.nowMs();
  const gate = shared.gateFor(request, nowMs);
  const epoch = enterDirectly(shared, gate, nowMs);
  if (epoch < 0) return undefined;
  const call = new DirectCall(shared, request, adapter, gate);
  call.epoch = epoch;
  if (precise) call.beganMs = nowMs;
  call.timeoutMs = deadlineMs === undefined ? policy.attemptMs : policy.attemptUnder(deadlineMs);
  return call;
}

const notBegun = (): void => undefined;
let resolveTaken: (end: never) => void = notBegun;
/** One executor for all promises: what each call allocates is a good part of what it costs. */
const takeResolve = (resolve: (end: never) => void): void => {
  resolveTaken = resolve;
};

/**
 * The first attempt of such a call. Nearly every call ends well; then it has cost no permit and no timer and, under a
 * ticker, no reading of the clock. With any other end it becomes a `CallExecution` whose first attempt it was.
 */
export class DirectCall<T> extends Abortable implements RunningAttempt, WheelEntry {
  dueMs = 0;
  slot = -1;
  previous: WheelEntry | undefined = undefined;
  next: WheelEntry | undefined = undefined;
  timeoutMs = 0;
  /** Undefined = not known yet, since no tick has come: its times are those of ticks. */
  beganMs: number | undefined = undefined;
  /** Of the closed breaker it began in. */
  epoch = 0;
  /** The call answers a value and not a result; its adapter is a `ValueAdapter`. */
  wantsValue = false;
  private readonly policy: CompiledPolicy;
  private run: CallWork<T>['run'] | undefined = undefined;
  private settle: (end: Ending<T>) => void = notBegun;

  constructor(
    private readonly shared: GuardShared,
    private readonly request: CallRequest,
    private readonly adapter: CallAdapter<T>,
    private readonly gate: BreakerGate | undefined,
  ) {
    super();
    this.policy = shared.policy;
  }

  get number(): number {
    return 1;
  }

  get probe(): boolean {
    return false;
  }

  get waiting(): boolean {
    return this.slot >= 0;
  }

  get startedMs(): number {
    return this.beganMs ?? this.shared.host.nowMs();
  }

  get full(): boolean {
    const { attemptMs, totalMs } = this.policy.settings.timeout;
    if (attemptMs !== undefined) return this.timeoutMs >= attemptMs;
    const { deadlineMs } = this.request;
    return deadlineMs === undefined || !(deadlineMs < totalMs);
  }

  /** Makes the attempt. Answers a `CallResult`, or a value where one is wanted. */
  start(run: CallWork<T>['run']): Promise<CallResult<T> | T> {
    this.run = run;
    const { timer } = this.shared;
    if (this.beganMs === undefined) timer.startAtTick(this, this.timeoutMs);
    else if (this.timeoutMs < Infinity) timer.start(this, this.beganMs + this.timeoutMs);
    const result = new Promise<CallResult<T> | T>(takeResolve);
    this.settle = resolveTaken as (end: Ending<T>) => void;
    try {
      asPromise(run(this)).then(
        (value) => {
          if (!this.over) this.settle(this.answered(value));
        },
        (error: unknown) => {
          if (!this.over) this.settle(this.threw(error));
        },
      );
    } catch (error) {
      this.settle(this.threw(error));
    }
    return result;
  }

  /** The timer's: the attempt has had its time. */
  due(nowMs: number): void {
    this.beganMs = this.dueMs - this.timeoutMs;
    this.settle(this.goOn((execution) => execution.due(nowMs)));
  }

  private answered(value: T): Ending<T> {
    const { shared, policy, gate } = this;
    const judgement = judgeAnswer(shared, this.adapter, value);
    const { kind, meaning } = classifyAnswer(judgement, policy.failures);
    if (kind === 'failure' || (meaning !== 'ok' && meaning !== 'refused'))
      return this.failed(value, judgement);
    this.over = true;
    if (this.slot >= 0) shared.timer.cancel(this);
    if (gate !== undefined) this.leave(gate, kind);
    shared.bulkhead.release();
    shared.totals.fresh += 1;
    return this.wantsValue ? value : { kind: 'fresh', value, attempts: 1, policy: policy.label };
  }

  /** By the ticker an end is dated by the tick to come: a success must not look older than it is. */
  private leave(gate: BreakerGate, kind: 'success' | 'ignored'): void {
    const { host } = this.shared;
    if (this.beganMs !== undefined || host.ticker === undefined) {
      const nowMs = host.nowMs();
      gate.ended(this.epoch, { kind, durationMs: nowMs - (this.beganMs ?? nowMs) }, nowMs);
    } else if (kind === 'success') {
      gate.succeeded(this.epoch, host.ticker.nowMs() + TICK_MS);
    } else {
      gate.ended(this.epoch, NEUTRAL, host.ticker.nowMs() + TICK_MS);
    }
  }

  /** Apart from `answered`: a closure there would cost every call. */
  private failed(value: T, judgement: Judgement): Ending<T> {
    return this.goOn((execution) => execution.judged(this, value, judgement));
  }

  private threw(error: unknown): Ending<T> {
    return this.goOn((execution) => execution.threw(this, error));
  }

  /** With this attempt as its first, under way until now. */
  private goOn(how: (execution: CallExecution<T>) => void): Promise<CallResult<T> | T> {
    const { shared, policy, gate, epoch, request, adapter, run } = this;
    if (run === undefined) throw new Error('a call goes on that was not begun');
    // Known by the tick that came after it. A call that has met none has all of its time before it.
    const startedMs = this.beganMs ?? shared.timer.beganMs(this, this.timeoutMs) ?? shared.host.nowMs();
    this.beganMs = startedMs;
    shared.timer.cancel(this);
    const result = new Promise<CallResult<T>>((settle) => {
      const execution = new CallExecution(shared, { request, adapter, run, settle }, startedMs, policy);
      execution.adopt(this, gate, epoch);
      how(execution);
    });
    return this.wantsValue ? concluded(result, adapter as ValueAdapter<T>) : result;
  }
}

const NEUTRAL = { kind: 'ignored', durationMs: 0 } as const;
