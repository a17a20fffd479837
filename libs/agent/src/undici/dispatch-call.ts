import type { Attempt, CallAdapter, CallRequest, CallResult } from '@bulwark/resilience';
import type { Dispatcher } from 'undici';
import {
  describeCall,
  simplifiedTarget,
  type CallEnvironment,
  type CallPlan,
  type FetchGuard,
} from '../call-plan.js';
import { CallerPace } from '../caller-pace.js';
import { inCallersContext } from '../callers-context.js';
import { joinMembers } from '../degraded-members.js';
import { isFinalStatus } from '../final-status.js';
import {
  attemptHeaders,
  degradedMarks,
  HEADER,
  rejectionProblem,
  retryAfterSeconds,
  timeoutProblem,
  type Problem,
} from '../headers.js';
import { judgeError, judgeHttp } from '../judge.js';
import { lastGoodKey, mayBeKept } from '../last-good-key.js';
import { CallerController } from './caller-controller.js';
import { DispatchAttempt, type DispatchAnswer, type Head, type Receiver } from './dispatch-attempt.js';
import { headerPairs, readPair, withMarks } from './request-headers.js';

/** Bytes are kept as they were sent: another caller may not know their coding. */
const AS_ENCODED = 'header:accept-encoding';

export interface DispatchCallParts {
  readonly environment: CallEnvironment;
  readonly dispatch: Dispatcher.Dispatch;
  /** `origin` is set. */
  readonly call: Dispatcher.DispatchOptions;
  readonly guard: FetchGuard;
  readonly caller: Dispatcher.DispatchHandler;
}

/** One request through a guarded dispatcher, whatever its number of attempts. */
export class DispatchCall {
  readonly #parts: DispatchCallParts;
  readonly #service: string;
  readonly #url: URL;
  readonly #plan: CallPlan;
  readonly #request: CallRequest;
  readonly #headers: ReturnType<typeof headerPairs>;
  readonly #replayable: boolean;
  readonly #callerAttempt: number | undefined;
  readonly #pace = new CallerPace();
  readonly #aborter = new AbortController();
  readonly #controller = new CallerController(this.#pace, (reason) => {
    // An ended answer is often torn down by its reader; that is no abort of the call.
    if (!this.#over) this.#aborter.abort(reason);
  });
  /** The caller has the head of its answer. */
  #begun = false;
  /** It has ended; the caller hears of that when the guard has, so that its next call finds the slot free. */
  #over = false;
  #judged: Promise<unknown> = Promise.resolve();
  #last: DispatchAnswer | undefined;

  constructor(parts: DispatchCallParts) {
    this.#parts = parts;
    const { environment, call, guard } = parts;
    this.#url = new URL(call.path, call.origin);
    this.#service = guard.service ?? this.#url.hostname;
    this.#headers = headerPairs(call.headers);
    this.#replayable = isReplayable(call.body);
    this.#callerAttempt = environment.inherited().callerAttempt;
    const method = call.method.toUpperCase();
    const operation = guard.operation ?? `${method} ${this.#url.pathname}`;
    this.#plan = environment.plan(this.#service, operation);
    const header = (name: string): string | undefined => readPair(this.#headers, name);
    const { lastGood } = this.#plan;
    const { href } = this.#url;
    // A query that undici adds itself is no part of the path, and so of no key: such an answer is not remembered.
    const cacheKey =
      lastGood && call.query === undefined
        ? lastGoodKey({ method, url: href, header }, [...lastGood.varyBy, AS_ENCODED])
        : undefined;
    const idempotencyKey = guard.idempotencyKey ?? header(HEADER.idempotencyKey);
    this.#request = {
      ...describeCall({ ...guard, ...(idempotencyKey !== undefined && { idempotencyKey }) }),
      operation,
      method,
      signal: this.#aborter.signal,
      ...(cacheKey !== undefined && { cacheKey }),
    };
  }

  start(): void {
    this.#safely(() => this.#parts.caller.onRequestStart?.(this.#controller, {}));
    const { call } = this.#parts;
    const result = this.#plan.execute<DispatchAnswer>(
      this.#request,
      (attempt) => this.#attempt(attempt, call, this.#isFinal),
      this.#adapter(),
    );
    this.#judged = result.catch(() => undefined);
    result.then((end) => this.#ended(end)).catch((error: unknown) => this.#receiver.error(error as Error));
  }

  #adapter(): CallAdapter<DispatchAnswer> {
    const simplifies = this.#plan.settings?.fallbacks.some(({ kind }) => kind === 'simplified') === true;
    return {
      judge: ({ head, body }) => {
        const judgement = judgeHttp(head.status, readOf(head), this.#parts.environment.unixMs());
        return { ...judgement, keep: body !== undefined };
      },
      judgeError,
      callerHold: () => this.#pace.read(),
      spent: () => {
        if (this.#begun) return 'delivered';
        return this.#replayable ? 'nothing' : 'sent';
      },
      ...(simplifies && {
        simplified: inCallersContext((operation: string, _request: CallRequest, attempt: Attempt) =>
          this.#simplified(operation, attempt),
        ),
      }),
    };
  }

  #attempt(
    attempt: Attempt,
    call: Dispatcher.DispatchOptions,
    isFinal: (head: Head) => boolean,
  ): Promise<DispatchAnswer> {
    this.#last?.waiting?.drop();
    const { cacheKey, idempotencyKey } = this.#request;
    const handler = new DispatchAttempt({
      signal: attempt.signal,
      receiver: this.#receiver,
      isFinal,
      believed: this.#parts.environment.believes(this.#url.hostname),
      mayBeKept: (head) => cacheKey !== undefined && mayBeKept(head.status, readOf(head)),
    });
    const marks: Record<string, string> = attemptHeaders(attempt, this.#callerAttempt);
    if (idempotencyKey !== undefined) marks[HEADER.idempotencyKey] = idempotencyKey;
    this.#parts.dispatch({ ...call, headers: withMarks(this.#headers, marks) }, handler);
    return handler.answered.then((answer) => (this.#last = answer));
  }

  readonly #isFinal = ({ status }: Head): boolean => isFinalStatus(status, this.#plan.settings);

  /** Waits at its head whatever its status: the marks of a degraded answer are still to come. */
  #simplified(operation: string, attempt: Attempt): Promise<DispatchAnswer> {
    const { call } = this.#parts;
    const { method, url } = simplifiedTarget(operation, { method: call.method, url: this.#url });
    const { body, ...rest } = call;
    const again = method === call.method && body !== undefined ? { body } : {};
    const path = `${url.pathname}${url.search}`;
    return this.#attempt(attempt, { ...rest, ...again, method: method, path }, () => false);
  }

  #ended(result: CallResult<DispatchAnswer>): void {
    if (this.#begun || this.#over) return;
    const value = 'value' in result ? result.value : undefined;
    if (value !== this.#last) this.#last?.waiting?.drop();
    switch (result.kind) {
      case 'fresh':
        return this.#pass(result.value, {});
      case 'degraded':
        return this.#degraded(result);
      case 'rejected':
        return this.#problem(rejectionProblem(this.#service, result), {
          [HEADER.rejected]: result.reason,
          'retry-after': retryAfterSeconds(result.retryAfterMs),
        });
      case 'failed': {
        const marks: Record<string, string> = result.retriesExhausted ? { [HEADER.retry]: 'exhausted' } : {};
        if (result.cancelled) return this.#receiver.error(result.error as Error);
        if (value !== undefined) return this.#pass(value, marks);
        if (result.timedOut) {
          return this.#problem(timeoutProblem({ service: this.#service, ...result }), marks);
        }
        return this.#receiver.error(result.error as Error);
      }
    }
  }

  #degraded(result: Extract<CallResult<DispatchAnswer>, { kind: 'degraded' }>): void {
    const { value, fixed } = result;
    const traceId = this.#parts.environment.traceId();
    const read = value && readOf(value.head);
    const marks: Record<string, string> = degradedMarks(this.#service, result, {
      traceId,
      rememberedAge: read?.('age'),
    });
    const members = joinMembers(read?.(HEADER.degraded), marks[HEADER.degraded]);
    if (members !== undefined) marks[HEADER.degraded] = members;
    if (value === undefined) {
      const { status = 200, body = '', contentType = 'text/plain' } = fixed ?? {};
      return this.#whole({ status, headers: { 'content-type': contentType, ...marks } }, Buffer.from(body));
    }
    this.#pass(value, marks);
  }

  /** An answer of the dependency, kept or waiting, with marks of this layer. */
  #pass({ head, body, waiting }: DispatchAnswer, marks: Record<string, string>): void {
    const headers: Record<string, string | string[] | undefined> = { ...head.headers, ...marks };
    // A session of an earlier answer must not be set once more.
    if (HEADER.degraded in marks) delete headers['set-cookie'];
    if (waiting !== undefined) return waiting.passOn({ ...head, headers });
    this.#whole({ status: head.status, headers }, body ?? Buffer.alloc(0));
  }

  #problem(problem: Problem, marks: Record<string, string>): void {
    const headers = { ...marks, 'content-type': 'application/problem+json' };
    this.#whole({ status: problem.status, headers }, Buffer.from(JSON.stringify(problem)));
  }

  #whole({ status, headers }: Omit<Head, 'statusMessage'>, body: Buffer): void {
    // Kept bytes are as they were sent; those made here have a length of their own.
    const length = { 'content-length': String(body.length) };
    this.#receiver.start({ status, headers: { ...headers, ...length }, statusMessage: '' }, undefined);
    if (body.length > 0 && this.#request.method !== 'HEAD') this.#receiver.data(body);
    this.#receiver.end(undefined, {});
  }

  /** Where answers go: the caller's handler, in order, once, and never with an exception of its own. */
  readonly #receiver: Receiver & {
    start: (head: Head, controller: Dispatcher.DispatchController | undefined) => void;
    end: (controller: Dispatcher.DispatchController | undefined, trailers: Head['headers']) => void;
  } = {
    informed: ({ status, headers, statusMessage }) =>
      this.#safely(() =>
        this.#parts.caller.onResponseStart?.(this.#controller, status, { ...headers }, statusMessage),
      ),
    start: ({ status, headers, statusMessage }, controller) => {
      if (this.#over) return;
      this.#begun = true;
      const shown = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
      this.#parts.environment.noteDegraded(readOf({ status, headers, statusMessage })(HEADER.degraded));
      this.#controller.rawHeaders = shown;
      if (controller !== undefined) this.#controller.target = controller;
      this.#safely(() =>
        this.#parts.caller.onResponseStart?.(this.#controller, status, shown, statusMessage),
      );
    },
    data: (chunk) => {
      if (!this.#over) this.#safely(() => this.#parts.caller.onResponseData?.(this.#controller, chunk));
    },
    end: (controller, trailers) => {
      if (this.#over) return;
      this.#over = true;
      this.#controller.rawTrailers = controller?.rawTrailers ?? {};
      this.#whenJudged(() => this.#parts.caller.onResponseEnd?.(this.#controller, { ...trailers }));
    },
    error: (error) => {
      if (this.#over) return;
      this.#over = true;
      this.#whenJudged(() => this.#parts.caller.onResponseError?.(this.#controller, error));
    },
  };

  #whenJudged(task: () => void): void {
    void this.#judged.then(() => this.#safely(task));
  }

  /** What a caller's handler throws ends its own request, as it does without Bulwark. */
  #safely(task: () => void): void {
    try {
      task();
    } catch (error) {
      this.#controller.abort(error as Error);
      this.#receiver.error(error as Error);
    }
  }
}

function readOf(head: Head) {
  return (name: string): string | undefined => {
    const value = head.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };
}

/** A body that can be read only once can be sent only once. */
function isReplayable(body: unknown): boolean {
  return body === null || body === undefined || typeof body === 'string' || ArrayBuffer.isView(body);
}
