import type { CallResult } from '@bulwark/resilience';
import type { CallerPace } from './caller-pace.js';
import { joinMembers } from './degraded-members.js';
import {
  ANSWER_MARKS,
  degradedMarks,
  HEADER,
  rejectionProblem,
  retryAfterSeconds,
  timeoutProblem,
  type Problem,
  type ReadHeader,
} from './headers.js';
import { LAST_GOOD_MAX_BYTES, mayBeKept } from './last-good-key.js';
import { watchBody, type WatchedBody } from './watched-body.js';

/** One answer: a live response, or its parts where they were read to be remembered. */
export type FetchAnswer = { readonly live: Response } | { readonly kept: KeptResponse };

export interface KeptResponse {
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** An answer to remember, or one that goes on as a stream; the part of it that was read comes first. */
export type Kept =
  | { readonly kept: KeptResponse }
  | { readonly source: ReadableStreamDefaultReader<Uint8Array>; readonly first: readonly Uint8Array[] };

/** Reads the body when it may be remembered; rejects when it breaks off meanwhile. */
export async function keep(response: Response): Promise<Kept | undefined> {
  const header: ReadHeader = (name) => response.headers.get(name);
  if (!mayBeKept(response.status, header)) return undefined;
  const { status, statusText, url, headers } = response;
  if (response.body === null) return { kept: { status, statusText, url, headers, body: new Uint8Array() } };
  if (Number(header('content-length') ?? 0) > LAST_GOOD_MAX_BYTES) return undefined;
  const source: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await source.read();
    if (done) break;
    chunks.push(value);
    bytes += value.byteLength;
    if (bytes > LAST_GOOD_MAX_BYTES) return { source, first: chunks };
  }
  return { kept: { status, statusText, url, headers, body: new Uint8Array(Buffer.concat(chunks)) } };
}

/** The same answer with a body that tells how it ended. */
export function watched(
  response: Response,
  read: Exclude<Kept, { kept: unknown }> | undefined,
  call: { readonly pace: CallerPace; readonly judged: Promise<unknown> },
): { readonly response: Response; readonly ended: WatchedBody['ended'] } | undefined {
  const source = read?.source ?? response.body?.getReader();
  if (source === undefined) return undefined;
  const { stream, ended } = watchBody(source, { ...call, first: read?.first ?? [] });
  const { status, statusText, headers, url, redirected, type } = response;
  const shown = { url, redirected, type };
  return { response: described(new Response(stream, { status, statusText, headers }), shown), ended };
}

/** The same answer, as one that says nothing of layers and levels. */
export function withoutMarks(response: Response): Response {
  if (!ANSWER_MARKS.some((name) => response.headers.has(name))) return response;
  const headers = new Headers(response.headers);
  for (const name of ANSWER_MARKS) headers.delete(name);
  const { status, statusText, body, url, redirected, type } = response;
  return described(new Response(body, { status, statusText, headers }), { url, redirected, type });
}

/** An answer nobody will read gives its connection back. */
export function discard(answer: FetchAnswer | undefined): void {
  if (answer !== undefined && 'live' in answer && !answer.live.bodyUsed) {
    answer.live.body?.cancel().catch(() => undefined);
  }
}

export function partsOf(answer: FetchAnswer): { readonly status: number; readonly headers: Headers } {
  return 'live' in answer ? answer.live : answer.kept;
}

/** What the caller of fetch gets; throws what fetch would have thrown. */
export function respond(
  service: string,
  result: CallResult<FetchAnswer>,
  traceId: string | undefined,
): Response {
  switch (result.kind) {
    case 'fresh':
      return toResponse(result.value, {});
    case 'degraded': {
      const remembered = result.value && partsOf(result.value).headers;
      const marks: Record<string, string> = degradedMarks(service, result, {
        traceId,
        rememberedAge: remembered?.get('age'),
      });
      if (result.value === undefined) return fixedResponse(result.fixed, marks);
      // A simplified answer may itself be degraded, by a layer below.
      const members = joinMembers(remembered?.get(HEADER.degraded), marks[HEADER.degraded]);
      return toResponse(result.value, { ...marks, ...(members && { [HEADER.degraded]: members }) });
    }
    case 'rejected':
      return problemResponse(rejectionProblem(service, result), {
        [HEADER.rejected]: result.reason,
        'retry-after': retryAfterSeconds(result.retryAfterMs),
      });
    case 'failed': {
      const marks: Record<string, string> = result.retriesExhausted ? { [HEADER.retry]: 'exhausted' } : {};
      if (result.cancelled && !result.timedOut) throw result.error;
      if (result.value !== undefined) return toResponse(result.value, marks);
      if (result.timedOut) return problemResponse(timeoutProblem({ service, ...result }), marks);
      throw result.error;
    }
  }
}

function toResponse(answer: FetchAnswer, marks: Record<string, string>): Response {
  if ('live' in answer && Object.keys(marks).length === 0) return answer.live;
  const parts = 'live' in answer ? answer.live : answer.kept;
  const headers = new Headers(parts.headers);
  for (const [name, value] of Object.entries(marks)) headers.set(name, value);
  // What fetch decoded already is no longer encoded.
  if (headers.has('content-encoding')) headers.delete('content-length');
  headers.delete('content-encoding');
  // A session of an earlier answer must not be set once more.
  if (HEADER.degraded in marks) headers.delete('set-cookie');
  const { status, statusText, url } = parts;
  const body = mayHaveBody(status) ? parts.body : null;
  return described(new Response(body, { status, statusText, headers }), { url });
}

/** What a made response does not say of itself. */
function described(
  response: Response,
  fields: Partial<Pick<Response, 'url' | 'redirected' | 'type'>>,
): Response {
  for (const [name, value] of Object.entries(fields)) {
    Object.defineProperty(response, name, { value, configurable: true, enumerable: true });
  }
  return response;
}

function fixedResponse(
  fixed: { status: number; body: string; contentType: string } | undefined,
  marks: Record<string, string>,
): Response {
  const { status = 200, body = '', contentType = 'text/plain' } = fixed ?? {};
  return new Response(mayHaveBody(status) ? body : null, {
    status,
    headers: { ...marks, 'content-type': contentType },
  });
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
