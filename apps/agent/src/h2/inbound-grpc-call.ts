import { DegradedMembers, GRPC_METADATA, judgeError, type IncomingMarks } from '@bulwark/agent';
import { constants, type OutgoingHttpHeaders } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { CallerPace } from '../caller-pace.js';
import type { CallTarget } from '../call-target.js';
import { withMember } from '../hop-headers.js';
import type { InboundCallEnd } from '../inbound-call.js';
import type { Told } from '../proxied-call.js';
import type { InboundEntry, Patience, TraceJoin } from '../trace-join.js';
import { traceOf } from '../traceparent.js';
import { hasMarks, patienceOf } from '../travelling-marks.js';
import { CallerStream } from './caller-stream.js';
import { exchange, ownAnswer, type AnswerSink, type GrpcAnswer } from './grpc-exchange.js';
import type { IncomingGrpcCall } from './grpc-listener.js';
import { ANSWER_MARKS, attemptMetadata, EXHAUSTED, readGrpcMarks, REQUEST_MARKS } from './grpc-marks.js';
import { STATUS } from './grpc-status.js';
import { listIn, passedOn } from './metadata.js';
import { RequestFeed } from './request-feed.js';
import type { UpstreamSessions } from './upstream-sessions.js';

export interface InboundGrpcCallOptions {
  readonly call: IncomingGrpcCall;
  readonly service: string;
  readonly target: CallTarget;
  readonly upstreams: UpstreamSessions;
  readonly join: TraceJoin;
  /** This side's name in Via. */
  readonly via: string;
  readonly onEnd: (end: InboundCallEnd) => void;
  /** The caller's marks are not believed. */
  readonly onStripped: (remoteAddress: string | undefined) => void;
}

const NOTHING_DROPPED: ReadonlySet<string> = new Set();
/** As for HTTP/1.1: a caller that ends its call by itself knows better whose fault the end is. */
const ANSWER_LATE_MS = 25;
/** The service may see its time end a little earlier than this side does. */
const CLOCK_SLACK_MS = 5;
/** Statuses that OpenTelemetry's conventions count as the server's errors. */
const SERVERS_FAILURES: ReadonlySet<number> = new Set([2, 4, 12, 13, 14, 15]);

/** One gRPC call to the service, from its headers to its trailers. No policy applies to it; its deadline does. */
export class InboundGrpcCall {
  readonly #options: InboundGrpcCallOptions;
  readonly #arrivedAtMs = performance.now();
  readonly #marks: IncomingMarks;
  readonly #patience: Patience;
  readonly #pace = new CallerPace();
  readonly #feed: RequestFeed;
  readonly #caller: CallerStream;
  readonly #ending = new AbortController();
  #timedOut = false;

  constructor(options: InboundGrpcCallOptions) {
    this.#options = options;
    const { call } = options;
    this.#marks = readGrpcMarks(call.headers, call.trusted);
    this.#patience = patienceOf(this.#marks, this.#arrivedAtMs);
    this.#feed = new RequestFeed(call.stream, this.#pace, call.empty);
    this.#caller = new CallerStream(call.stream, this.#pace);
  }

  async run(): Promise<void> {
    const { call, join, onEnd, onStripped } = this.#options;
    if (!call.trusted && hasMarks(call)) onStripped(call.remoteAddress);
    const outcome = this.#marks.deadlineMs === 0 ? this.#refuseLate() : await this.#joined(join);
    this.#feed.discard();
    onEnd({ outcome, seconds: (performance.now() - this.#arrivedAtMs) / 1_000 });
    // Whatever went wrong, a call that was taken on ends.
    if (!this.#caller.ended) this.#caller.reset(constants.NGHTTP2_INTERNAL_ERROR);
  }

  /** Calls the service while outbound calls can find this one. */
  async #joined(join: TraceJoin): Promise<InboundCallEnd['outcome']> {
    const { stream, headers } = this.#options.call;
    const trace = traceOf(headers['traceparent']);
    const entry = join.enter(trace, this.#patience);
    stream.once('close', () => {
      if (this.#caller.ended) return;
      join.abandon(entry);
      this.#ending.abort(new Error('the caller went away'));
    });
    const { deadlineMs } = this.#marks;
    const late = (): void => {
      this.#timedOut = true;
      this.#ending.abort(new Error('the caller stops waiting'));
    };
    const timer = deadlineMs === undefined ? undefined : setTimeout(late, deadlineMs);
    try {
      return this.#answered(await this.#callService(trace.made), entry);
    } catch (error) {
      return await this.#failed(error);
    } finally {
      clearTimeout(timer);
      if (this.#timedOut) join.abandon(entry);
      join.leave(entry);
    }
  }

  async #callService(made: string | undefined): Promise<GrpcAnswer> {
    const { call, target, upstreams } = this.#options;
    const answer = await exchange(upstreams, {
      target,
      headers: this.#headersDown(made),
      feed: this.#feed,
      signal: this.#ending.signal,
      sink: this.#sink,
      dropped: () => (call.trusted ? NOTHING_DROPPED : ANSWER_MARKS),
    });
    const leftMs = this.#patience.endsAtMs - performance.now();
    if (answer.code === STATUS.deadlineExceeded && leftMs <= CLOCK_SLACK_MS) {
      // The caller's time is up, and the service has seen it first.
      this.#timedOut = true;
      throw new Error('the service saw the end of its time');
    }
    return answer;
  }

  #headersDown(made: string | undefined): OutgoingHttpHeaders {
    const { call, via } = this.#options;
    const headers = passedOn(call.rawHeaders, call.headers, REQUEST_MARKS);
    const { endsAtMs, attempt } = this.#patience;
    const peer = call.remoteAddress?.replace(/^::ffff:/i, '');
    if (made !== undefined) delete headers['tracestate'];
    return {
      ...headers,
      via: withMember(listIn(headers, 'via'), via),
      ...(peer !== undefined && { 'x-forwarded-for': withMember(listIn(headers, 'x-forwarded-for'), peer) }),
      ...attemptMetadata({ number: attempt, timeoutMs: endsAtMs - performance.now() }),
      ...(made !== undefined && { traceparent: made }),
    };
  }

  readonly #sink: AnswerSink = {
    onHeaders: (headers) => this.#begin(headers),
    onData: (_headers, chunk, resume) => this.#caller.write(chunk, resume),
  };

  #begin(headers: OutgoingHttpHeaders): void {
    this.#caller.begin(headers);
    this.#feed.answered();
  }

  #answered(answer: GrpcAnswer, { told }: InboundEntry): InboundCallEnd['outcome'] {
    const { trusted } = this.#options.call;
    const marks = trusted ? marksUp(answer, told) : {};
    this.#caller.end({ ...answer.trailers, ...marks });
    return SERVERS_FAILURES.has(answer.code) ? 'failed' : 'ok';
  }

  #refuseLate(): InboundCallEnd['outcome'] {
    this.#endLate('No time was left for it, so the service was not called');
    return 'deadline';
  }

  async #failed(error: unknown): Promise<InboundCallEnd['outcome']> {
    if (this.#timedOut) {
      await delay(ANSWER_LATE_MS);
      this.#endLate('The service had not answered when its caller stopped waiting');
      return 'deadline';
    }
    if (this.#ending.signal.aborted) return 'cancelled';
    const begun = this.#caller.begun;
    const { service } = this.#options;
    const why = error instanceof Error ? error.message : 'no answer';
    const code = judgeError(error).transport === undefined ? STATUS.internal : STATUS.unavailable;
    this.#caller.end(ownAnswer(code, `The service ${service} could not be called: ${why}.`).trailers);
    return begun ? 'failed' : 'unreachable';
  }

  #endLate(what: string): void {
    const { service } = this.#options;
    const detail = `The call to ${service} came with ${Math.round(this.#marks.deadlineMs ?? 0)} ms to live. ${what}.`;
    // Nobody's failure: neither breaker nor retry of the caller should make anything of it.
    const marks = { [GRPC_METADATA.rejected]: 'deadline' };
    this.#caller.end(ownAnswer(STATUS.deadlineExceeded, detail, marks).trailers);
  }
}

/** What an answer hands to the caller of the service: of the service itself, and of the calls it made meanwhile. */
function marksUp({ code, trailers }: GrpcAnswer, told: Told): OutgoingHttpHeaders {
  const members = new DegradedMembers();
  members.add(listIn(trailers, GRPC_METADATA.degraded));
  members.add(told.degraded);
  return {
    ...(members.list !== undefined && { [GRPC_METADATA.degraded]: members.list }),
    ...(told.exhausted && code !== 0 && EXHAUSTED),
  };
}
