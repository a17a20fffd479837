import {
  attemptHeaders,
  degradedMarks,
  HEADER,
  isFinalStatus,
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
import {
  discard,
  hasAnswerMarks,
  HeldAnswer,
  NO_BODY,
  relayedHeaders,
  writeAnswer,
  type Answer,
} from './answer.js';
import { bodyTooSlow, unreachable } from './call-problems.js';
import { callUpstream, type Settle } from './call-upstream.js';
import { CallerPace } from './caller-pace.js';
import type { CallTarget } from './call-target.js';
import { cutOff } from './cut-off.js';
import { endToEnd, headerOf, listOf, withHeaders, withMember, type RawHeaders } from './hop-headers.js';
import { fieldsDown, OF_A_BODY, simplifiedRequest, type OutboundRequest } from './outbound-request.js';
import { writeProblem } from './problem-answer.js';
import type { RequestBody } from './request-body.js';
import { StreamedAnswer } from './response-stream.js';
import type { UpstreamClient } from './upstream-client.js';
import type { AnswerHead } from './upstream/answer-head.js';
import { TooManyConnectionsError } from './upstream/connection-pool.js';
import type { BodySink, Exchange } from './upstream/exchange.js';
import { fieldLine, requestHead } from './upstream/request-head.js';

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
  /** Hears when an answer's marks do not count, and there were some. */
  readonly onStripped?: (remoteAddress: string | undefined) => void;
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

/** Idempotent, so that RFC 9110 §9.2.2 lets a proxy send them again when their connection turns out to be closed. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** The answer had begun to reach the caller; nothing else can be answered any more. */
class AnswerBegunError extends Error {
  override readonly name = 'AnswerBegunError';
}

/** One call through the proxy, from its head to its last byte. */
export class ProxiedCall {
  readonly #options: ProxiedCallOptions;
  /** The same in every attempt. */
  readonly #fields: string;
  readonly #method: string;
  readonly #marks: IncomingMarks;
  readonly #cacheKey: string | undefined;
  readonly #pace = new CallerPace();
  /** The dependency's last answer, and that of the simplified call, when they did not go straight to the caller. */
  #last: Answer | undefined;
  #simplified: Answer | undefined;
  #begun = false;

  constructor(options: ProxiedCallOptions) {
    this.#options = options;
    const { request, target, plan } = options;
    this.#method = request.method ?? 'GET';
    this.#marks = options.marks ?? readIncomingMarks(this.#requestHeader);
    this.#fields = fieldsDown(options);
    this.#cacheKey =
      plan.lastGood &&
      lastGoodKey(
        { method: this.#method, url: target.url, header: this.#requestHeader },
        // Bytes are kept as they came: encoded for who asked.
        [...plan.lastGood.varyBy, 'header:accept-encoding'],
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
      (attempt) => this.#attempt(attempt, undefined),
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
      simplified: (operation, _request, attempt) =>
        this.#attempt(attempt, simplifiedRequest(operation, this.#method)),
    };
  }

  #judgeError(error: unknown): Judgement {
    if (error instanceof AnswerBegunError) return { ignore: true, noRetry: true };
    // The sidecar's own limit, not the dependency's.
    if (error instanceof TooManyConnectionsError) return { failure: true, ignore: true };
    const judgement = judgeError(error);
    return this.#begun ? { ...judgement, noRetry: true } : judgement;
  }

  /** `other` = in place of the caller's own request. */
  #attempt(attempt: Attempt, other: OutboundRequest | undefined): Promise<Answer> {
    if (this.#begun) throw new AnswerBegunError('the answer has begun');
    const { upstreams, target, body } = this.#options;
    const simplified = other !== undefined;
    const method = other?.method ?? this.#method;
    const withBody = other === undefined || other.withBody;
    // The answer itself may still be needed, should the simplified call fail.
    if (!simplified) discard(this.#last);
    const call = {
      origin: target,
      toHead: method === 'HEAD',
      head: this.#head(attempt, { method, path: other?.path ?? target.path, withBody }),
      body: withBody ? body.forUpstream(this.#pace) : ({ kind: 'whole', bytes: NO_BODY } as const),
      signal: attempt.signal,
      repeatable: (body.replayable || !withBody) && REPEATABLE.has(method),
    };
    return callUpstream<Answer>(upstreams, call, {
      begin: (head, exchange, settle) => this.#answerBegins(head, { exchange, settle, simplified }),
    });
  }

  #head(attempt: Attempt, { method, path, withBody }: OutboundRequest): string {
    const { basePath } = this.#options.target;
    let marks = '';
    for (const [name, value] of Object.entries(attemptHeaders(attempt, this.#marks.callerAttempt))) {
      marks += fieldLine(name, value);
    }
    const target = path.startsWith('/') ? `${basePath}${path}` : path;
    const fields = withBody ? this.#fields : fieldsDown(this.#options, OF_A_BODY);
    return requestHead(method, target, fields + marks);
  }

  /** Decides what becomes of an answer: it goes straight to the caller, or is read first. */
  #answerBegins(head: AnswerHead, { exchange, settle, simplified }: AnswerBegins): BodySink {
    const { response, believes, onStripped, via } = this.#options;
    const { status } = head;
    const believed = believes?.(exchange.remoteAddress) ?? true;
    if (!believed && hasAnswerMarks(head)) onStripped?.(exchange.remoteAddress);
    const headers = relayedHeaders(head, via, believed);
    if (simplified || !isFinalStatus(status, this.#options.plan.settings)) {
      const resolve = (answer: Answer): void => {
        if (simplified) this.#simplified = answer;
        else this.#last = answer;
        settle.resolve(answer);
      };
      return new HeldAnswer({ status, headers }, exchange, { resolve, reject: settle.reject });
    }
    this.#begun = true;
    this.#tell(headers);
    const kept = this.#cacheKey !== undefined && mayBeRemembered(status, headers);
    const keepBytes = kept ? LAST_GOOD_MAX_BYTES : 0;
    return new StreamedAnswer({ response, exchange, status, headers, keepBytes, pace: this.#pace, settle });
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
    const used = result.kind === 'rejected' ? undefined : result.value;
    if (this.#last !== used) discard(this.#last);
    if (this.#simplified !== used) discard(this.#simplified);
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
        return writeProblem(response, unreachable(target, result), marks);
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
    const marks = { 'Bulwark-Degraded': withMember(below, degraded['bulwark-degraded']), Age: age };
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

interface AnswerBegins {
  readonly exchange: Exchange;
  readonly settle: Settle<Answer>;
  /** It is the answer of the simplified call. */
  readonly simplified: boolean;
}

/** A degraded answer is not remembered as a full one. */
function mayBeRemembered(status: number, headers: RawHeaders): boolean {
  const header = (name: string): string | undefined => headerOf(headers, name);
  return mayBeKept(status, header) && header(HEADER.degraded) === undefined;
}
