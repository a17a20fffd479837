import {
  attemptHeaders,
  degradedMarks,
  HEADER,
  judgeError,
  judgeHttp,
  LAST_GOOD_MAX_BYTES,
  lastGoodKey,
  mayBeKept,
  readIncomingMarks,
  rejectionProblem,
  retryAfterSeconds,
  timeoutProblem,
  type Attempt,
  type CallAdapter,
  type CallPlan,
  type CallResult,
  type IncomingMarks,
  type Judgement,
} from '@bulwark/agent';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { discard, headersOf, readAnswer, writeAnswer, type Answer } from './answer.js';
import { CallerPace } from './caller-pace.js';
import type { CallTarget } from './call-target.js';
import { cutOff } from './cut-off.js';
import { endToEnd, headerOf, withHeaders, type RawHeaders } from './hop-headers.js';
import { writeProblem } from './problem-answer.js';
import type { RequestBody } from './request-body.js';
import { streamAnswer } from './response-stream.js';
import type { UpstreamClient } from './upstream-client.js';

export interface ProxiedCallOptions {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: CallTarget;
  readonly body: RequestBody;
  readonly plan: CallPlan;
  readonly upstreams: UpstreamClient;
  /** This proxy's name in Via. */
  readonly via: string;
  readonly traceId: string | undefined;
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal;
  /** What is known of the caller's patience. Default: what the request's own headers say. */
  readonly marks?: IncomingMarks;
  /** Sent in place of what the request has (none, or one that is not valid); its `tracestate` goes too. */
  readonly traceparent?: string;
  /**
   * Whether the marks of an answer from this address count; those of others are neither believed nor relayed.
   * Undefined = an address that is not known any more. Default: all count.
   */
  readonly believes?: (remoteAddress: string | undefined) => boolean;
  /** Hears, before the head of the answer is written, what it says of this call and the layers below; at most once. */
  readonly onTold?: (told: Told) => void;
}

/** What the answer to a call hands upward. */
export interface Told {
  /** The layer above must not retry. */
  readonly exhausted: boolean;
  /** Members of `Bulwark-Degraded`, of this call and of the layers below; undefined = a full answer. */
  readonly degraded: string | undefined;
}

/** Said anew to the next hop. */
const NOT_PASSED_ON = ['host', 'expect', HEADER.deadline, HEADER.attempt];
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** The answer had begun to reach the caller; nothing else can be answered any more. */
class AnswerBegunError extends Error {
  override readonly name = 'AnswerBegunError';
}

/** One call through the proxy, from its head to its last byte. */
export class ProxiedCall {
  readonly #options: ProxiedCallOptions;
  readonly #headers: string[];
  readonly #method: string;
  readonly #marks: IncomingMarks;
  readonly #cacheKey: string | undefined;
  readonly #pace = new CallerPace();
  #last: Answer | undefined;
  #begun = false;

  constructor(options: ProxiedCallOptions) {
    this.#options = options;
    const { request, target, via, body, plan, traceparent } = options;
    this.#method = request.method ?? 'GET';
    this.#marks = options.marks ?? readIncomingMarks(this.#requestHeader);
    this.#headers = withHeaders(endToEnd(request.rawHeaders, NOT_PASSED_ON), {
      Host: target.authority,
      Via: joined(headerOf(request.rawHeaders, 'via'), via),
    }).concat(body.headers);
    if (traceparent !== undefined) {
      // The state belongs to the trace that was not valid: W3C Trace Context §3.3.1.
      this.#headers = endToEnd(this.#headers, ['traceparent', 'tracestate']).concat(
        'traceparent',
        traceparent,
      );
    }
    this.#cacheKey =
      plan.lastGood &&
      lastGoodKey(
        { method: this.#method, url: target.url, header: this.#requestHeader },
        plan.lastGood.varyBy,
      );
  }

  async run(): Promise<CallResult<Answer>> {
    const { plan, target, signal, body } = this.#options;
    const marks = this.#marks;
    // A body that can be sent once only makes one attempt, as a call does that is itself a repetition.
    const callerAttempt = body.replayable ? marks.callerAttempt : Math.max(2, marks.callerAttempt ?? 1);
    const result = await plan.execute<Answer>(
      {
        operation: target.operation,
        method: this.#method,
        signal,
        ...marks,
        ...(callerAttempt !== undefined && { callerAttempt }),
        ...(this.#cacheKey !== undefined && { cacheKey: this.#cacheKey }),
      },
      (attempt) => this.#attempt(attempt, target.path),
      this.#adapter(),
    );
    this.#answer(result);
    return result;
  }

  readonly #requestHeader = (name: string): string | undefined => {
    const value = this.#options.request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };

  #adapter(): CallAdapter<Answer> {
    return {
      judge: (answer) => {
        const judgement = judgeHttp(answer.status, (name) => headerOf(answer.headers, name), Date.now());
        return { ...judgement, keep: answer.keep };
      },
      judgeError: (error) => this.#judgeError(error),
      callerHold: () => this.#pace.read(),
      simplified: (operation, _request, attempt) => {
        const path = operation.slice(operation.indexOf(' ') + 1);
        return this.#attempt(attempt, path);
      },
    };
  }

  #judgeError(error: unknown): Judgement {
    if (error instanceof AnswerBegunError) return { ignore: true, noRetry: true };
    const judgement = judgeError(error);
    return this.#begun ? { ...judgement, noRetry: true } : judgement;
  }

  async #attempt(attempt: Attempt, path: string): Promise<Answer> {
    if (this.#begun) throw new AnswerBegunError('the answer has begun');
    discard(this.#last);
    const { upstreams, target, body, response, believes } = this.#options;
    const message = await upstreams.open({
      target: { ...target, path },
      method: this.#method,
      headers: withHeaders(this.#headers, attemptHeaders(attempt, this.#marks.callerAttempt)),
      signal: attempt.signal,
      repeatable: body.replayable && REPEATABLE.has(this.#method),
      send: (request) => body.send(request, this.#pace),
    });
    const headers = headersOf(message, believes?.(message.socket.remoteAddress) ?? true);
    if (!this.#isFinal(message) || path !== target.path) {
      this.#last = await readAnswer(message, headers);
      return this.#last;
    }
    this.#begun = true;
    this.#tell(headers);
    const kept = this.#cacheKey !== undefined && mayBeRemembered(message.statusCode ?? 0, headers);
    return streamAnswer(message, response, {
      headers,
      marks: { Via: joined(headerOf(headers, 'via'), this.#options.via) },
      keepBytes: kept ? LAST_GOOD_MAX_BYTES : 0,
      pace: this.#pace,
    });
  }

  /** Whether the caller gets this answer whatever the policy says: then it need not wait in memory. */
  #isFinal(message: IncomingMessage): boolean {
    const status = message.statusCode ?? 502;
    const { settings } = this.#options.plan;
    if (settings === undefined) return true;
    return (
      status < 500 &&
      status !== 408 &&
      status !== 429 &&
      !settings.failures.statuses.has(status) &&
      settings.retry?.statuses.has(status) !== true
    );
  }

  /** `headers` are the answer's, all marks in them. */
  #tell(headers: RawHeaders): void {
    const exhausted = headerOf(headers, HEADER.retry)?.trim().toLowerCase() === 'exhausted';
    this.#options.onTold?.({ exhausted, degraded: listOf(headers, HEADER.degraded) });
  }

  #answer(result: CallResult<Answer>): void {
    const { response, target } = this.#options;
    const service = target.service;
    if (this.#begun) {
      // A whole answer has ended by itself; a broken one must not look whole.
      if (result.kind !== 'fresh' && !response.writableFinished) cutOff(response);
      return;
    }
    if (result.kind === 'degraded' || result.kind === 'rejected') discard(this.#last);
    switch (result.kind) {
      case 'fresh':
        this.#tell(result.value.headers);
        return writeAnswer(response, result.value);
      case 'degraded':
        return this.#degraded(result);
      case 'rejected':
        return writeProblem(response, rejectionProblem(service, result), {
          'Bulwark-Rejected': result.reason,
          'Retry-After': retryAfterSeconds(result.retryAfterMs),
        });
      case 'failed': {
        if (result.cancelled && result.timedOut) {
          return writeProblem(response, bodyTooSlow(service, result.policy), { Connection: 'close' });
        }
        if (result.cancelled) return void response.destroy();
        const marks: Record<string, string> = result.retriesExhausted ? { 'Bulwark-Retry': 'exhausted' } : {};
        this.#tell(withHeaders(result.value?.headers ?? [], marks));
        if (result.value !== undefined) return writeAnswer(response, result.value, marks);
        if (result.timedOut) return writeProblem(response, timeoutProblem({ service, ...result }), marks);
        return writeProblem(response, unreachable(service, result), marks);
      }
    }
  }

  #degraded(result: Extract<CallResult<Answer>, { kind: 'degraded' }>): void {
    const { response, target, traceId } = this.#options;
    const { value } = result;
    const rememberedAge = value && headerOf(value.headers, 'age');
    const { age, ...degraded } = degradedMarks(target.service, result, { traceId, rememberedAge });
    // A simplified answer may itself be degraded, by a layer below.
    const below = value && listOf(value.headers, HEADER.degraded);
    const marks = { 'Bulwark-Degraded': joined(below, degraded['bulwark-degraded']), Age: age };
    this.#tell(Object.entries(marks).flat());
    // A session of an earlier answer must not be set once more.
    if (value !== undefined) {
      return writeAnswer(response, { ...value, headers: endToEnd(value.headers, ['set-cookie']) }, marks);
    }
    const { status = 200, body = '', contentType = 'text/plain' } = result.fixed ?? {};
    response.writeHead(status, {
      ...marks,
      'Content-Type': contentType,
      'Content-Length': Buffer.byteLength(body),
    });
    response.end(body);
  }
}

function bodyTooSlow(service: string, policy: string | undefined) {
  return {
    type: 'urn:bulwark:problem:request-timeout',
    title: 'The request did not arrive in time',
    status: 408,
    detail: `The body of the call to ${service} was still coming when the call's time was used up. Raise the policy's timeout for large transfers.`,
    service,
    reason: 'request-timeout',
    ...(policy !== undefined && { policy }),
  };
}

function unreachable(
  service: string,
  failed: { error: unknown; attempts: number; policy: string | undefined },
) {
  const error = failed.error instanceof Error ? failed.error : undefined;
  const code =
    error !== undefined && 'code' in error && typeof error.code === 'string' ? error.code : 'no answer';
  return {
    type: 'urn:bulwark:problem:unreachable',
    title: 'The dependency could not be reached or broke off',
    status: 502,
    detail: `The call to ${service} failed after ${failed.attempts} attempt(s): ${code}.`,
    service,
    reason: 'failure',
    ...(failed.policy !== undefined && { policy: failed.policy }),
  };
}

/** A degraded answer is not remembered as a full one. */
function mayBeRemembered(status: number, headers: RawHeaders): boolean {
  const header = (name: string): string | undefined => headerOf(headers, name);
  return mayBeKept(status, header) && header(HEADER.degraded) === undefined;
}

/** All values of a list header; undefined = it is not there. */
function listOf(headers: RawHeaders, name: string): string | undefined {
  const values = headers.filter((_value, at) => at % 2 === 1 && headers[at - 1]?.toLowerCase() === name);
  return values.length === 0 ? undefined : values.join(', ');
}

function joined(former: string | undefined, last: string): string {
  return former === undefined ? last : `${former}, ${last}`;
}
