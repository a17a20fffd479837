import {
  judgeError,
  judgeGrpc,
  METHOD_OF_LEVEL,
  rejectionOf,
  rejectionProblem,
  timeoutProblem,
  type Attempt,
  type CallAdapter,
  type CallPlan,
  type CallResult,
  type IncomingMarks,
} from '@bulwark/agent';
import { constants, type OutgoingHttpHeaders } from 'node:http2';
import { CallerPace } from '../caller-pace.js';
import type { CallTarget } from '../call-target.js';
import type { Told } from '../proxied-call.js';
import { CallerStream } from './caller-stream.js';
import { exchange, ownAnswer, type AnswerSink, type GrpcAnswer } from './grpc-exchange.js';
import type { IncomingGrpcCall } from './grpc-listener.js';
import { ANSWER_MARKS, attemptMetadata, EXHAUSTED, REQUEST_MARKS, toldBy } from './grpc-marks.js';
import { STATUS } from './grpc-status.js';
import { passedOn, valueOf } from './metadata.js';
import { RequestFeed } from './request-feed.js';
import type { UpstreamSessions } from './upstream-sessions.js';

export interface ProxiedGrpcCallOptions {
  readonly call: IncomingGrpcCall;
  readonly target: CallTarget;
  readonly plan: CallPlan;
  readonly upstreams: UpstreamSessions;
  /** This proxy's name in Via. */
  readonly via: string;
  /** What is known of the caller's patience. */
  readonly marks: IncomingMarks;
  /** Sent in place of the request's own; undefined = its own is passed on. */
  readonly traceparent: string | undefined;
  /** Whether the marks of an answer from this address count; those of others are neither believed nor relayed. */
  readonly believes: (remoteAddress: string | undefined) => boolean;
  /** The marks of an answer from this address are not believed. */
  readonly onStripped: (remoteAddress: string | undefined) => void;
  /** Hears, before the trailers are written, what they say of this call and the layers below. */
  readonly onTold: ((told: Told) => void) | undefined;
}

const NOTHING_DROPPED: ReadonlySet<string> = new Set();
/** Timers of the other side count from another moment: so much earlier may it say that time is up. */
const CLOCK_SLACK_MS = 5;
/**
 * Headers of an answer wait so long for the first message: a call that fails without one can be made again. A caller
 * that waits for headers (of a stream that is silent at first) has them after this time.
 */
const HOLD_HEADERS_MS = 250;

/** One gRPC call through the proxy, from its headers to its trailers. */
export class ProxiedGrpcCall {
  readonly #options: ProxiedGrpcCallOptions;
  readonly #headers: OutgoingHttpHeaders;
  readonly #pace = new CallerPace();
  readonly #feed: RequestFeed;
  readonly #caller: CallerStream;
  readonly #gone = new AbortController();
  #heldHeaders: ReturnType<typeof setTimeout> | undefined;

  constructor(options: ProxiedGrpcCallOptions) {
    this.#options = options;
    const { call, via, traceparent } = options;
    this.#feed = new RequestFeed(call.stream, this.#pace, call.empty);
    this.#caller = new CallerStream(call.stream, this.#pace);
    this.#headers = passedOn(call.rawHeaders, call.headers, REQUEST_MARKS);
    const former = valueOf(this.#headers, 'via');
    this.#headers['via'] = former === undefined ? via : `${former}, ${via}`;
    if (traceparent !== undefined) {
      this.#headers['traceparent'] = traceparent;
      delete this.#headers['tracestate'];
    }
    call.stream.once('close', () => {
      if (!this.#caller.ended) this.#gone.abort(new Error('the caller went away'));
    });
  }

  async run(): Promise<CallResult<GrpcAnswer>> {
    const { plan, target, marks } = this.#options;
    const result = await plan.execute<GrpcAnswer>(
      {
        operation: target.operation,
        method: METHOD_OF_LEVEL.IDEMPOTENCY_UNKNOWN,
        signal: this.#gone.signal,
        ...marks,
      },
      (attempt) => this.#attempt(attempt),
      this.#adapter(),
    );
    this.#answer(result);
    return result;
  }

  #adapter(): CallAdapter<GrpcAnswer> {
    return {
      judge: ({ code, trailers }) => judgeGrpc(code, (name) => valueOf(trailers, name)),
      judgeError,
      callerHold: () => this.#pace.read(),
      spent: () => (this.#caller.begun ? 'delivered' : this.#feed.whole ? 'nothing' : 'sent'),
      // Nobody here knows the message that would be one.
      makesStatic: false,
    };
  }

  async #attempt(attempt: Attempt): Promise<GrpcAnswer> {
    const { upstreams, target, marks, believes, onStripped } = this.#options;
    const beganAtMs = performance.now();
    const answer = await exchange(upstreams, {
      target,
      headers: { ...this.#headers, ...attemptMetadata(attempt, marks.callerAttempt) },
      feed: this.#feed,
      signal: attempt.signal,
      sink: this.#sink,
      dropped: (address) => (believes(address) ? NOTHING_DROPPED : ANSWER_MARKS),
      onDropped: onStripped,
    }).finally(() => clearTimeout(this.#heldHeaders));
    const late = performance.now() - beganAtMs >= attempt.timeoutMs - CLOCK_SLACK_MS;
    // The engine is about to say so itself, and it knows whose time it was.
    if (answer.code === STATUS.deadlineExceeded && late && this.#enforced) await aborted(attempt.signal);
    return answer;
  }

  /** The engine ends attempts that run out of time. */
  get #enforced(): boolean {
    return this.#options.plan.settings?.mode !== 'shadow';
  }

  readonly #sink: AnswerSink = {
    onHeaders: (headers) => {
      // While the request goes on its caller may wait for the headers before it sends more.
      if (!this.#feed.ended || !this.#mayBeRepeated) this.#begin(headers);
      else this.#heldHeaders = setTimeout(() => this.#begin(headers), HOLD_HEADERS_MS);
    },
    onData: (headers, chunk, resume) => {
      if (!this.#caller.begun) this.#begin(headers);
      return this.#caller.write(chunk, resume);
    },
  };

  /** Whether a failing attempt may be followed by another; only then is anything held back for it. */
  get #mayBeRepeated(): boolean {
    const { plan, marks } = this.#options;
    const retry = this.#enforced ? plan.settings?.retry : undefined;
    if (retry === undefined || !this.#feed.whole || (marks.callerAttempt ?? 1) > 1) return false;
    return marks.idempotencyKey !== undefined || retry.methods.has(METHOD_OF_LEVEL.IDEMPOTENCY_UNKNOWN);
  }

  #begin(headers: OutgoingHttpHeaders): void {
    clearTimeout(this.#heldHeaders);
    this.#caller.begin(headers);
    this.#feed.answered();
  }

  #answer(result: CallResult<GrpcAnswer>): void {
    const answer = this.#final(result);
    if (answer === undefined) {
      this.#caller.reset(constants.NGHTTP2_CANCEL);
    } else {
      this.#options.onTold?.(toldBy(answer.headers, answer.trailers));
      if (answer.headers !== undefined) this.#caller.begin(answer.headers);
      this.#caller.end(answer.trailers);
    }
    this.#feed.discard();
  }

  /** Undefined = the caller is gone. */
  #final(result: CallResult<GrpcAnswer>): GrpcAnswer | undefined {
    const { service } = this.#options.target;
    switch (result.kind) {
      case 'fresh':
        return result.value;
      case 'degraded':
        // Fallbacks of a policy make no gRPC messages here.
        return this.#final(result.cause);
      case 'rejected': {
        const { detail } = rejectionProblem(service, result);
        const { code, details, metadata } = rejectionOf({ ...result, details: detail });
        return ownAnswer(code, details, metadata.getMap() as OutgoingHttpHeaders);
      }
      case 'failed': {
        const answer = this.#failed(service, result);
        if (answer === undefined || !result.retriesExhausted) return answer;
        return { ...answer, trailers: { ...answer.trailers, ...EXHAUSTED } };
      }
    }
  }

  #failed(
    service: string,
    result: Extract<CallResult<GrpcAnswer>, { kind: 'failed' }>,
  ): GrpcAnswer | undefined {
    if (result.value !== undefined) return result.value;
    if (result.timedOut) {
      return ownAnswer(STATUS.deadlineExceeded, timeoutProblem({ service, ...result }).detail);
    }
    if (result.cancelled) return undefined;
    const { error, attempts } = result;
    const why = error instanceof Error ? error.message : 'no answer';
    const code = judgeError(error).transport === undefined ? STATUS.internal : STATUS.unavailable;
    return ownAnswer(code, `The call to ${service} failed after ${attempts} attempt(s): ${why}.`);
  }
}

/** At the latest when the engine ends the attempt; it does, since the attempt has an end. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
