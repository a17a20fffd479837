import {
  attemptHeaders,
  HEADER,
  joinMembers,
  judgeError,
  type IncomingMarks,
  type Problem,
} from '@bulwark/agent';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { NO_BODY, relayedHeaders, type Answer } from './answer.js';
import { causeOf } from './call-problems.js';
import { callUpstream, type Settle } from './call-upstream.js';
import { CallerPace } from './caller-pace.js';
import type { CallTarget } from './call-target.js';
import { cutOff } from './cut-off.js';
import { FieldNames, HOP_BY_HOP, listOf, withHeaders, withMember, type RawHeaders } from './hop-headers.js';
import type { IncomingCall } from './http-listener.js';
import { writeProblem } from './problem-answer.js';
import type { Told } from './proxied-call.js';
import { relayInformation } from './relay-information.js';
import { fieldLines, framingLines } from './request-fields.js';
import { StreamedAnswer } from './response-stream.js';
import { streamUpload } from './stream-upload.js';
import type { InboundEntry, Patience, TraceJoin } from './trace-join.js';
import { traceOf } from './traceparent.js';
import { hasMarks, MARKS, patienceOf, readMarks } from './travelling-marks.js';
import type { UpstreamClient } from './upstream-client.js';
import type { AnswerHead } from './upstream/answer-head.js';
import type { BodySink, Exchange, UpstreamBody } from './upstream/exchange.js';
import { fieldLine, requestHead } from './upstream/request-head.js';

/**
 * `failed`: the service answered 5xx, or broke its answer off; `unreachable`: it could not be connected to, or broke off
 * before its answer; `deadline`: the caller's time was used up; `cancelled`: the caller went away.
 */
type Outcome = 'ok' | 'failed' | 'unreachable' | 'deadline' | 'cancelled';

/** How one inbound call ended, for metrics. */
export interface InboundCallEnd {
  readonly outcome: Outcome;
  readonly seconds: number;
}

export interface InboundCallOptions extends IncomingCall {
  readonly service: string;
  readonly target: CallTarget;
  readonly upstreams: UpstreamClient;
  readonly join: TraceJoin;
  /** This side's name in Via. */
  readonly via: string;
  readonly onEnd: (end: InboundCallEnd) => void;
  /** The caller's marks are not believed. */
  readonly onStripped: (remoteAddress: string | undefined) => void;
}

const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);
const SAID_ANEW = new FieldNames([...HOP_BY_HOP, ...MARKS, 'host', 'via', 'x-forwarded-for']);
/**
 * The caller ends its call at the same time by itself, and knows better whose fault the end is: its own deadline was
 * short, or the service was slow. Only one that does not is answered, this much later.
 */
const ANSWER_LATE_MS = 25;

/** One call to the service, from its head to its last byte. */
export class InboundCall {
  readonly #options: InboundCallOptions;
  readonly #arrivedAtMs = performance.now();
  readonly #marks: IncomingMarks;
  readonly #patience: Patience;
  readonly #ending = new AbortController();
  #timedOut = false;
  #callerGone = false;

  constructor(options: InboundCallOptions) {
    this.#options = options;
    this.#marks = readMarks(options.request, options.trusted);
    this.#patience = patienceOf(this.#marks, this.#arrivedAtMs);
  }

  async run(): Promise<void> {
    const { request, response, join, onEnd, onStripped, trusted } = this.#options;
    if (!trusted && hasMarks(request)) onStripped(request.socket.remoteAddress);
    const outcome = this.#marks.deadlineMs === 0 ? this.#refuseLate() : await this.#joined(join);
    onEnd({ outcome, seconds: (performance.now() - this.#arrivedAtMs) / 1_000 });
    // Whatever went wrong, a call that was taken on ends.
    if (!response.writableEnded && !response.destroyed) cutOff(response);
  }

  #refuseLate(): Outcome {
    this.#writeDeadline('No time was left for it, so the service was not called');
    return 'deadline';
  }

  /** Calls the service while outbound calls can find this one. */
  async #joined(join: TraceJoin): Promise<Outcome> {
    const { request, response } = this.#options;
    const trace = traceOf(request.headers['traceparent']);
    const entry = join.enter(trace, this.#patience);
    response.once('close', () => {
      this.#callerGone = !response.writableFinished;
      if (!this.#callerGone) return;
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
      return await this.#callService(entry, trace.made);
    } catch (error) {
      return await this.#failed(error);
    } finally {
      clearTimeout(timer);
      if (this.#timedOut) join.abandon(entry);
      join.leave(entry);
    }
  }

  async #callService(entry: InboundEntry, made: string | undefined): Promise<Outcome> {
    const { upstreams, target, request } = this.#options;
    const method = request.method ?? 'GET';
    const path = target.path.startsWith('/') ? `${target.basePath}${target.path}` : target.path;
    const call = {
      origin: target,
      toHead: method === 'HEAD',
      head: requestHead(method, path, this.#fieldsDown(made)),
      body: this.#body(),
      signal: this.#ending.signal,
      repeatable: REPEATABLE.has(method) && !hasBody(request),
    };
    const { status } = await callUpstream<Answer>(upstreams, call, {
      interim: (head) => relayInformation(head, this.#options),
      begin: (head, exchange, settle) => this.#answerBegins(head, { exchange, settle, entry }),
    });
    return status >= 500 ? 'failed' : 'ok';
  }

  #answerBegins(
    head: AnswerHead,
    { exchange, settle, entry }: { exchange: Exchange; settle: Settle<Answer>; entry: InboundEntry },
  ): BodySink {
    const { response, trusted, via } = this.#options;
    const { status } = head;
    const relayed = relayedHeaders(head, via, trusted);
    const headers = trusted ? withHeaders(relayed, marksUp(status, relayed, entry.told)) : relayed;
    const pace = new CallerPace();
    return new StreamedAnswer({ response, exchange, status, headers, keepBytes: 0, pace, settle });
  }

  #fieldsDown(made: string | undefined): string {
    const { request, target, expectsContinue, via } = this.#options;
    const { rawHeaders, socket } = request;
    const dropped = SAID_ANEW.with([
      ...(expectsContinue ? [] : ['expect']),
      ...(made === undefined ? [] : ['traceparent', 'tracestate']),
    ]);
    const { endsAtMs, attempt } = this.#patience;
    const peer = socket.remoteAddress?.replace(/^::ffff:/i, '');
    const own = {
      Via: withMember(listOf(rawHeaders, 'via'), via),
      ...(peer !== undefined && {
        'X-Forwarded-For': withMember(listOf(rawHeaders, 'x-forwarded-for'), peer),
      }),
      ...attemptHeaders({ number: attempt, timeoutMs: endsAtMs - performance.now() }),
      ...(made !== undefined && { traceparent: made }),
    };
    let lines = fieldLine('Host', target.authority) + fieldLines(rawHeaders, dropped) + framingLines(request);
    for (const [name, value] of Object.entries(own)) lines += fieldLine(name, value);
    return lines;
  }

  #body(): UpstreamBody {
    const { request } = this.#options;
    if (!hasBody(request)) return { kind: 'whole', bytes: NO_BODY };
    const chunked = request.headers['transfer-encoding'] !== undefined;
    return { kind: 'stream', chunked, start: (upload) => streamUpload(request, upload, new CallerPace()) };
  }

  async #failed(error: unknown): Promise<Outcome> {
    const { response, service, target } = this.#options;
    if (this.#timedOut) {
      await delay(ANSWER_LATE_MS);
      this.#writeDeadline('The service had not answered when its caller stopped waiting');
      return 'deadline';
    }
    if (this.#callerGone) return 'cancelled';
    if (response.headersSent) return 'failed';
    const refused = judgeError(error).transport === 'connect';
    writeProblem(response, unreachable(service, target, { refused, error }));
    return 'unreachable';
  }

  #writeDeadline(what: string): void {
    const { response, service } = this.#options;
    const problem: Problem = {
      type: 'urn:bulwark:problem:deadline',
      title: 'No time is left for the call',
      status: 504,
      detail: `The call to ${service} came with ${this.#marks.deadlineMs} ms to live. ${what}.`,
      service,
      reason: 'deadline',
    };
    // Nobody's failure: neither breaker nor retry of the caller should make anything of it.
    writeProblem(response, problem, { 'Bulwark-Rejected': 'deadline' });
  }
}

/** What an answer hands to the caller of the service: of the service itself, and of the calls it made meanwhile. */
function marksUp(status: number, headers: RawHeaders, told: Told): Record<string, string> {
  const degraded = joinMembers(listOf(headers, HEADER.degraded), told.degraded);
  const failing = status >= 500 || status === 429 || status === 408;
  return {
    ...(degraded !== undefined && { 'Bulwark-Degraded': degraded }),
    ...(told.exhausted && failing && { 'Bulwark-Retry': 'exhausted' }),
  };
}

function unreachable(
  service: string,
  { host, port }: CallTarget,
  { refused, error }: { refused: boolean; error: unknown },
): Problem {
  const code = causeOf(error);
  const where = `the service ${service} at ${host}:${port}`;
  return {
    type: `urn:bulwark:problem:${refused ? 'service-unreachable' : 'service-broke-off'}`,
    title: refused ? 'The service is not there' : 'The service broke the call off',
    status: refused ? 503 : 502,
    detail: refused
      ? `The sidecar cannot connect to ${where}: ${code}.`
      : `The connection to ${where} ended before its answer: ${code}.`,
    service,
    reason: refused ? 'unreachable' : 'broke-off',
  };
}

function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  return coding !== undefined || (length !== undefined && length !== '0');
}
