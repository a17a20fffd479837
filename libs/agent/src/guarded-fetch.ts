import type { Attempt, CallAdapter, CallRequest, CallResult, GuardSettings } from '@bulwark/resilience';
import {
  attemptHeaders,
  degradedMarks,
  HEADER,
  rejectionProblem,
  retryAfterSeconds,
  timeoutProblem,
  type Problem,
  type ReadHeader,
} from './headers.js';
import { judgeError, judgeHttp } from './judge.js';
import { LAST_GOOD_MAX_BYTES, lastGoodKey, mayBeKept } from './last-good-key.js';

/** What only Bulwark needs to know of a call; everything has a default. */
export interface FetchGuard {
  /** Default: the URL's host name. */
  readonly service?: string;
  /** Default: method and path, "GET /v1/recs". */
  readonly operation?: string;
  readonly idempotencyKey?: string;
  /** What the caller has left, milliseconds. */
  readonly deadlineMs?: number;
  readonly attributes?: Readonly<Record<string, string>>;
}

export interface GuardedInit extends RequestInit {
  readonly bulwark?: FetchGuard;
}

/** The guard of one call, chosen before the call is described in full. */
export interface CallPlan {
  /** Of the policy that matches; undefined = the call passes unguarded. */
  readonly settings: GuardSettings | undefined;
  /** Set when the policy remembers answers. */
  readonly lastGood: { readonly varyBy: readonly string[] } | undefined;
  execute<T>(
    request: CallRequest,
    attempt: (attempt: Attempt) => Promise<T>,
    adapter: CallAdapter<T>,
  ): Promise<CallResult<T>>;
}

export interface FetchEnvironment {
  readonly plan: (service: string, operation: string) => CallPlan;
  /** Marks of the call this process is answering at the moment. */
  readonly inherited: () => { deadlineMs?: number; callerAttempt?: number };
  readonly traceId: () => string | undefined;
  readonly unixMs: () => number;
}

/** One answer: a live response, or its parts where they were read to be remembered. */
type Answer = { readonly live: Response } | { readonly kept: KeptResponse };

interface KeptResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
}

/**
 * `fetch` under the policies. A guard's refusal is an answer (503, 504) and not an error, so that code that looks at
 * statuses works unchanged; transport errors and the caller's own abort are thrown as fetch throws them.
 */
export async function guardedFetch(
  environment: FetchEnvironment,
  input: string | URL | Request,
  init: GuardedInit = {},
): Promise<Response> {
  const { bulwark: guard = {}, ...plainInit } = init;
  const url = new URL(input instanceof Request ? input.url : input);
  const method = (init.method ?? (input instanceof Request ? input.method : 'GET')).toUpperCase();
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  const service = guard.service ?? url.hostname;
  const operation = guard.operation ?? `${method} ${url.pathname}`;
  const plan = environment.plan(service, operation);
  const header: ReadHeader = (name) => headers.get(name);
  const cacheKey = plan.lastGood && lastGoodKey({ method, url: url.href, header }, plan.lastGood.varyBy);
  const inherited = environment.inherited();
  const signal = init.signal ?? (input instanceof Request ? input.signal : undefined);
  const request: CallRequest = {
    ...describe(guard),
    operation,
    method,
    ...(!replayable(input, init) && { callerAttempt: Math.max(2, inherited.callerAttempt ?? 1) }),
    ...(signal && { signal }),
    ...(cacheKey !== undefined && { cacheKey }),
  };
  if (guard.idempotencyKey !== undefined) headers.set(HEADER.idempotencyKey, guard.idempotencyKey);
  let last: Answer | undefined;
  const send = async (attempt: Attempt, target: Request | URL): Promise<Answer> => {
    discard(last);
    const attempted = new Headers(headers);
    for (const [name, value] of Object.entries(attemptHeaders(attempt, inherited.callerAttempt))) {
      attempted.set(name, value);
    }
    const response = await fetch(target, { ...plainInit, headers: attempted, signal: attempt.signal });
    last = cacheKey === undefined ? { live: response } : await keep(response);
    return last;
  };
  const result = await plan.execute<Answer>(
    request,
    (attempt) => send(attempt, input instanceof Request ? input : url),
    adapter(environment, (simplified, attempt) => send(attempt, simplifiedUrl(url, simplified))),
  );
  // A simplified answer is the last one itself.
  const unread = result.kind === 'rejected' || (result.kind === 'degraded' && result.value !== last);
  if (unread) discard(last);
  return respond(environment, service, result);
}

function describe(guard: FetchGuard): Pick<CallRequest, 'deadlineMs' | 'idempotencyKey' | 'attributes'> {
  const { deadlineMs, idempotencyKey, attributes } = guard;
  return {
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(attributes !== undefined && { attributes }),
  };
}

/** A body that can be read only once can be sent only once. */
function replayable(input: string | URL | Request, init: RequestInit): boolean {
  const { body } = init;
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

/** "GET /v1/recs/popular" beside the original URL; the query goes with the path. */
function simplifiedUrl(url: URL, operation: string): URL {
  const path = operation.slice(operation.indexOf(' ') + 1);
  return new URL(path.includes('?') ? path : `${path}${url.search}`, url);
}

function adapter(
  environment: FetchEnvironment,
  simplified: (operation: string, attempt: Attempt) => Promise<Answer>,
): CallAdapter<Answer> {
  return {
    judge: (answer) => {
      const { status, headers } = 'live' in answer ? answer.live : answer.kept;
      const judgement = judgeHttp(status, (name) => headers.get(name), environment.unixMs());
      return { ...judgement, keep: 'kept' in answer };
    },
    judgeError,
    simplified: (operation, _request, attempt) => simplified(operation, attempt),
  };
}

/** Reads the body when it may be remembered. What turns out too large goes on as a stream, the part read first. */
async function keep(response: Response): Promise<Answer> {
  const header: ReadHeader = (name) => response.headers.get(name);
  const announced = Number(header('content-length') ?? 0);
  if (!mayBeKept(response.status, header) || announced > LAST_GOOD_MAX_BYTES) return { live: response };
  const { status, statusText, headers } = response;
  if (response.body === null) return { kept: { status, statusText, headers, body: new Uint8Array() } };
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { kept: { status, statusText, headers, body: new Uint8Array(Buffer.concat(chunks)) } };
    chunks.push(value);
    bytes += value.byteLength;
    if (bytes > LAST_GOOD_MAX_BYTES) {
      return { live: new Response(resume(chunks, reader), { status, statusText, headers }) };
    }
  }
}

function resume(
  read: Uint8Array[],
  rest: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start: (controller) => read.forEach((chunk) => controller.enqueue(chunk)),
    pull: async (controller) => {
      const { done, value } = await rest.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => rest.cancel(reason),
  });
}

/** An answer nobody will read gives its connection back. */
function discard(answer: Answer | undefined): void {
  if (answer !== undefined && 'live' in answer && !answer.live.bodyUsed) {
    answer.live.body?.cancel().catch(() => undefined);
  }
}

function respond(environment: FetchEnvironment, service: string, result: CallResult<Answer>): Response {
  switch (result.kind) {
    case 'fresh':
      return toResponse(result.value, {});
    case 'degraded': {
      const rememberedAge = result.value && headersOf(result.value).get('age');
      const marks = degradedMarks(service, result, { traceId: environment.traceId(), rememberedAge });
      if (result.value !== undefined) return toResponse(result.value, marks);
      const { status = 200, body = '', contentType = 'text/plain' } = result.fixed ?? {};
      return new Response(mayHaveBody(status) ? body : null, {
        status,
        headers: { ...marks, 'content-type': contentType },
      });
    }
    case 'rejected':
      return problemResponse(rejectionProblem(service, result), {
        [HEADER.rejected]: result.reason,
        'retry-after': retryAfterSeconds(result.retryAfterMs),
      });
    case 'failed': {
      const marks: Record<string, string> = result.retriesExhausted ? { [HEADER.retry]: 'exhausted' } : {};
      if (result.value !== undefined) return toResponse(result.value, marks);
      if (result.timedOut) return problemResponse(timeoutProblem({ service, ...result }), marks);
      throw result.error;
    }
  }
}

function headersOf(answer: Answer): Headers {
  return 'live' in answer ? answer.live.headers : answer.kept.headers;
}

function toResponse(answer: Answer, marks: Record<string, string>): Response {
  if ('live' in answer && Object.keys(marks).length === 0) return answer.live;
  const parts = 'live' in answer ? answer.live : answer.kept;
  const headers = new Headers(parts.headers);
  for (const [name, value] of Object.entries(marks)) headers.set(name, value);
  // What fetch decoded already is no longer encoded.
  headers.delete('content-encoding');
  headers.delete('content-length');
  // A session of an earlier answer must not be set once more.
  if (HEADER.degraded in marks) headers.delete('set-cookie');
  const body = mayHaveBody(parts.status) ? parts.body : null;
  return new Response(body, { status: parts.status, statusText: parts.statusText, headers });
}

function mayHaveBody(status: number): boolean {
  return status !== 204 && status !== 205 && status !== 304;
}

function problemResponse(problem: Problem, marks: Record<string, string>): Response {
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { ...marks, 'content-type': 'application/problem+json' },
  });
}
