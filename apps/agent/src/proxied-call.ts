import {
  attemptHeaders,
  degradedMarks,
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
  type Judgement,
} from '@bulwark/agent';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { discard, readAnswer, writeAnswer, type Answer } from './answer.js';
import { CallerPace } from './caller-pace.js';
import type { CallTarget } from './call-target.js';
import { cutOff } from './cut-off.js';
import { endToEnd, headerOf, withHeaders } from './hop-headers.js';
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
}

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
  readonly #callerAttempt: number | undefined;
  readonly #cacheKey: string | undefined;
  readonly #pace = new CallerPace();
  #last: Answer | undefined;
  #begun = false;

  constructor(options: ProxiedCallOptions) {
    this.#options = options;
    const { request, target, via, body, plan } = options;
    this.#method = request.method ?? 'GET';
    this.#headers = withHeaders(endToEnd(request.rawHeaders, ['host', 'expect']), {
      Host: target.authority,
      Via: joined(headerOf(request.rawHeaders, 'via'), via),
    }).concat(body.headers);
    this.#cacheKey =
      plan.lastGood &&
      lastGoodKey(
        { method: this.#method, url: target.url, header: this.#requestHeader },
        plan.lastGood.varyBy,
      );
  }

  async run(): Promise<CallResult<Answer>> {
    const { plan, target, signal, body } = this.#options;
    const marks = readIncomingMarks(this.#requestHeader);
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
      (attempt) => this.#attempt(attempt, target.path, marks.callerAttempt),
      this.#adapter(marks.callerAttempt),
    );
    this.#answer(result);
    return result;
  }

  readonly #requestHeader = (name: string): string | undefined => {
    const value = this.#options.request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };

  #adapter(callerAttempt: number | undefined): CallAdapter<Answer> {
    return {
      judge: (answer) => {
        const judgement = judgeHttp(answer.status, (name) => headerOf(answer.headers, name), Date.now());
        return { ...judgement, keep: answer.keep };
      },
      judgeError: (error) => this.#judgeError(error),
      callerHold: () => this.#pace.read(),
      simplified: (operation, _request, attempt) => {
        const path = operation.slice(operation.indexOf(' ') + 1);
        return this.#attempt(attempt, path, callerAttempt);
      },
    };
  }

  #judgeError(error: unknown): Judgement {
    if (error instanceof AnswerBegunError) return { ignore: true, noRetry: true };
    const judgement = judgeError(error);
    return this.#begun ? { ...judgement, noRetry: true } : judgement;
  }

  async #attempt(attempt: Attempt, path: string, callerAttempt: number | undefined): Promise<Answer> {
    if (this.#begun) throw new AnswerBegunError('the answer has begun');
    discard(this.#last);
    const { upstreams, target, body, response } = this.#options;
    const message = await upstreams.open({
      target: { ...target, path },
      method: this.#method,
      headers: withHeaders(this.#headers, attemptHeaders(attempt, callerAttempt)),
      signal: attempt.signal,
      repeatable: body.replayable && REPEATABLE.has(this.#method),
      send: (request) => body.send(request, this.#pace),
    });
    if (!this.#isFinal(message) || path !== target.path) {
      this.#last = await readAnswer(message);
      return this.#last;
    }
    this.#begun = true;
    const kept = this.#cacheKey !== undefined && mayBeKept(message.statusCode ?? 0, headerIn(message));
    return streamAnswer(message, response, {
      marks: { Via: joined(headerIn(message)('via'), this.#options.via) },
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
    const marks = { 'Bulwark-Degraded': degraded['bulwark-degraded'], Age: age };
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

function headerIn(message: IncomingMessage) {
  return (name: string): string | undefined => headerOf(message.rawHeaders, name);
}

function joined(former: string | undefined, last: string): string {
  return former === undefined ? last : `${former}, ${last}`;
}
