import type { Attempt, CallAdapter, CallRequest, CallResult } from '@bulwark/resilience';
import {
  describeCall,
  simplifiedTarget,
  type CallEnvironment,
  type CallPlan,
  type FetchGuard,
} from './call-plan.js';
import { inCallersContext } from './callers-context.js';
import { CallerPace } from './caller-pace.js';
import { discard, keep, partsOf, respond, watched, withoutMarks, type FetchAnswer } from './fetch-answer.js';
import { isFinalStatus } from './final-status.js';
import { attemptHeaders, HEADER, type ReadHeader } from './headers.js';
import { judgeError, judgeHttp } from './judge.js';
import { lastGoodKey } from './last-good-key.js';

export interface GuardedInit extends RequestInit {
  readonly bulwark?: FetchGuard;
}

/** What is fetched at one attempt. */
interface Target {
  readonly input: Request | URL;
  readonly init: RequestInit;
}

/** One `fetch`, from its request to the end of the answer's body. */
export class FetchCall {
  readonly #environment: CallEnvironment;
  readonly #service: string;
  readonly #plan: CallPlan;
  readonly #request: CallRequest;
  readonly #target: Target;
  readonly #url: URL;
  readonly #headers: Headers;
  readonly #replayable: boolean;
  readonly #callerAttempt: number | undefined;
  readonly #pace = new CallerPace();
  /** Gives the caller an answer whose end is still to come. */
  #deliver: (response: Response) => void = () => undefined;
  /** Settles when the guard is done with the call. */
  #judged: Promise<unknown> = Promise.resolve();
  #delivered = false;
  #last: FetchAnswer | undefined;

  /** Throws what `fetch` rejects with: a URL or a header that is none. */
  constructor(environment: CallEnvironment, input: string | URL | Request, init: GuardedInit) {
    const { bulwark: guard = {}, ...plainInit } = init;
    const given = input instanceof Request ? input : undefined;
    this.#environment = environment;
    this.#url = new URL(input instanceof Request ? input.url : input);
    const method = (init.method ?? given?.method ?? 'GET').toUpperCase();
    this.#headers = new Headers(init.headers ?? given?.headers);
    if (guard.idempotencyKey !== undefined) this.#headers.set(HEADER.idempotencyKey, guard.idempotencyKey);
    this.#target = { input: given ?? this.#url, init: plainInit };
    this.#replayable = isReplayable(input, init);
    this.#service = guard.service ?? this.#url.hostname;
    const operation = guard.operation ?? `${method} ${this.#url.pathname}`;
    this.#plan = environment.plan(this.#service, operation);
    this.#callerAttempt = environment.inherited().callerAttempt;
    const header: ReadHeader = (name) => this.#headers.get(name);
    const { lastGood } = this.#plan;
    const cacheKey = lastGood && lastGoodKey({ method, url: this.#url.href, header }, lastGood.varyBy);
    const signal = init.signal ?? given?.signal;
    const idempotencyKey = guard.idempotencyKey ?? this.#headers.get(HEADER.idempotencyKey) ?? undefined;
    this.#request = {
      ...describeCall({ ...guard, ...(idempotencyKey !== undefined && { idempotencyKey }) }),
      operation,
      method,
      ...(signal && { signal }),
      ...(cacheKey !== undefined && { cacheKey }),
    };
  }

  run(): Promise<Response> {
    return new Promise((resolve, reject) => {
      this.#deliver = (response) => {
        this.#delivered = true;
        this.#tell(response);
        resolve(response);
      };
      const result = this.#plan.execute<FetchAnswer>(
        this.#request,
        (attempt) => this.#attempt(attempt, this.#target),
        this.#adapter(),
      );
      this.#judged = result.catch(() => undefined);
      result.then((end) => this.#ended(end, resolve)).catch(reject);
    });
  }

  #ended(result: CallResult<FetchAnswer>, resolve: (response: Response) => void): void {
    if (this.#delivered) return;
    // A simplified answer is the last one itself.
    if (result.kind === 'rejected' || (result.kind === 'degraded' && result.value !== this.#last)) {
      discard(this.#last);
    }
    const response = respond(this.#service, result, this.#environment.traceId());
    this.#tell(response);
    resolve(response);
  }

  #tell(response: Response): void {
    this.#environment.noteDegraded(response.headers.get(HEADER.degraded));
  }

  #adapter(): CallAdapter<FetchAnswer> {
    const simplifies = this.#plan.settings?.fallbacks.some(({ kind }) => kind === 'simplified') === true;
    return {
      judge: (answer) => {
        const { status, headers } = partsOf(answer);
        const judgement = judgeHttp(status, (name) => headers.get(name), this.#environment.unixMs());
        return { ...judgement, keep: 'kept' in answer };
      },
      judgeError,
      callerHold: () => this.#pace.read(),
      spent: () => {
        if (this.#delivered) return 'delivered';
        return this.#replayable ? 'nothing' : 'sent';
      },
      ...(simplifies && {
        simplified: inCallersContext((operation: string, _request: CallRequest, attempt: Attempt) =>
          this.#simplified(operation, attempt),
        ),
      }),
    };
  }

  async #attempt(attempt: Attempt, target: Target): Promise<FetchAnswer> {
    const response = await this.#send(attempt, target);
    const { status } = response;
    if (!isFinalStatus(status, this.#plan.settings)) return this.#remember({ live: response });
    const read = this.#request.cacheKey === undefined ? undefined : await keep(response);
    if (read !== undefined && 'kept' in read) return this.#remember(read);
    // Nothing bounds the call and nobody counts it: it is none of Bulwark's business from here on.
    if (this.#plan.settings === undefined && attempt.timeoutMs === Infinity) return { live: response };
    // What was given up meanwhile must not reach the caller in the place of another attempt.
    attempt.signal.throwIfAborted();
    const parts = watched(response, read, { pace: this.#pace, judged: this.#judged });
    if (parts === undefined) return this.#remember({ live: response });
    this.#deliver(parts.response);
    await parts.ended;
    return { live: response };
  }

  async #simplified(operation: string, attempt: Attempt): Promise<FetchAnswer> {
    const { method = 'GET' } = this.#request;
    const target = simplifiedTarget(operation, { method, url: this.#url });
    const { body, ...init } = this.#target.init;
    const again = target.method === method && body !== undefined ? { body } : {};
    const response = await this.#send(attempt, {
      input: target.url,
      init: { ...init, method: target.method, ...again },
    });
    return this.#remember({ live: response });
  }

  async #send(attempt: Attempt, { input, init }: Target): Promise<Response> {
    discard(this.#last);
    const headers = new Headers(this.#headers);
    for (const [name, value] of Object.entries(attemptHeaders(attempt, this.#callerAttempt))) {
      headers.set(name, value);
    }
    const { signal } = this.#request;
    // The caller's own signal ends the body also after the attempt is over, as it does without Bulwark.
    const either = signal === undefined ? attempt.signal : AbortSignal.any([attempt.signal, signal]);
    const response = await fetch(input, { ...init, headers, signal: either });
    const believed = this.#environment.believes(this.#url.hostname);
    return believed ? response : withoutMarks(response);
  }

  #remember(answer: FetchAnswer): FetchAnswer {
    this.#last = answer;
    return answer;
  }
}

/** A body that can be read only once can be sent only once. */
function isReplayable(input: string | URL | Request, { body }: RequestInit): boolean {
  if (body === undefined || body === null) return !(input instanceof Request && input.body !== null);
  return (
    typeof body === 'string' ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof URLSearchParams ||
    body instanceof FormData ||
    body instanceof Blob
  );
}
