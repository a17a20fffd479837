import type { CallResult, RejectionReason } from '@bulwark/resilience';

/** The headers that travel with calls and answers; DESIGN §13. Lower case, as Node reads them. */
export const HEADER = {
  deadline: 'bulwark-deadline',
  attempt: 'bulwark-attempt',
  retry: 'bulwark-retry',
  rejected: 'bulwark-rejected',
  degraded: 'bulwark-degraded',
  idempotencyKey: 'idempotency-key',
} as const;

/** Reads one header; absent = undefined. */
export type ReadHeader = (name: string) => string | null | undefined;

/** Reads one header as a server gives it: one that came several times may be a list. */
export type HeaderReader = (name: string) => string | readonly string[] | null | undefined;

/** RFC 9110 §5.3: lines of one name are one list. */
export function joiningLines(read: HeaderReader): ReadHeader {
  return (name) => {
    const value = read(name);
    return typeof value === 'object' && value !== null ? value.join(', ') : value;
  };
}

/** What an incoming call says of its caller's patience. */
export interface IncomingMarks {
  /** What the caller has left, milliseconds; 0 = nothing. */
  readonly deadlineMs?: number;
  /** The caller's attempt number; absent = its first. */
  readonly callerAttempt?: number;
  readonly idempotencyKey?: string;
}

const MAX_DEADLINE_MS = 24 * 3_600_000;
const MAX_ATTEMPT = 1_000;
const MAX_AGE_S = 2 ** 31;

/** Junk in a header is as if it were not there; a deadline below 0 is 0. */
export function readIncomingMarks(read: ReadHeader): IncomingMarks {
  const deadlineMs = wholeNumber(read(HEADER.deadline), MAX_DEADLINE_MS);
  const callerAttempt = wholeNumber(read(HEADER.attempt), MAX_ATTEMPT);
  const idempotencyKey = read(HEADER.idempotencyKey);
  return {
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(callerAttempt !== undefined && callerAttempt >= 1 && { callerAttempt }),
    ...(idempotencyKey && { idempotencyKey }),
  };
}

/** Headers of one attempt to the next hop. */
export function attemptHeaders(attempt: { number: number; timeoutMs: number }, callerAttempt = 1) {
  const headers: Record<string, string> = {};
  if (Number.isFinite(attempt.timeoutMs)) {
    headers[HEADER.deadline] = String(Math.max(0, Math.floor(attempt.timeoutMs)));
  }
  // A layer that was itself called again says so further down, or the layers below would multiply.
  const number = Math.max(attempt.number, callerAttempt);
  if (number > 1) headers[HEADER.attempt] = String(number);
  return headers;
}

/** What only a believed layer may say on an answer. */
export const ANSWER_MARKS: readonly string[] = [HEADER.retry, HEADER.rejected, HEADER.degraded];

/** What an answer's headers say of the layers below. */
export interface AnswerMarks {
  readonly retryAfterMs?: number;
  /** Retries below were used up, or a guard below rejected the call. */
  readonly noRetry: boolean;
  /** A guard below rejected it: no failure of the one that relays it. */
  readonly rejectedBelow: boolean;
}

const OF_ONE_INSTANCE: ReadonlySet<string> = new Set(['draining', 'starting']);

/**
 * What a relayed rejection means. An instance that is only starting or going away refuses a call for itself alone, and
 * another may take it at once; after any other rejection no layer above tries again.
 */
export function readRejection(rejected: string | null | undefined): { rejected: boolean; noRetry: boolean } {
  const reason = rejected?.trim() ?? '';
  return { rejected: reason !== '', noRetry: reason !== '' && !OF_ONE_INSTANCE.has(reason) };
}

export function readAnswerMarks(read: ReadHeader, nowUnixMs: number): AnswerMarks {
  const retryAfterMs = parseRetryAfterMs(read('retry-after'), nowUnixMs);
  const { rejected, noRetry } = readRejection(read(HEADER.rejected));
  const exhausted = read(HEADER.retry)?.trim().toLowerCase() === 'exhausted';
  return {
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    noRetry: exhausted || noRetry,
    rejectedBelow: rejected,
  };
}

/** RFC 9110 §10.2.3: seconds, or an HTTP date. Junk, negative and past are undefined. */
export function parseRetryAfterMs(value: string | null | undefined, nowUnixMs: number): number | undefined {
  if (!value) return undefined;
  const text = value.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  if (!/^[A-Za-z]{3,9},? /.test(text)) return undefined;
  const waitMs = Date.parse(text) - nowUnixMs;
  return Number.isFinite(waitMs) && waitMs >= 0 ? waitMs : undefined;
}

/** Whole seconds, rounded up: a client that obeys is never early. At least 1. */
export function retryAfterSeconds(retryAfterMs: number | undefined): string {
  return String(Math.max(1, Math.ceil((retryAfterMs ?? 1_000) / 1_000)));
}

/** One member of the RFC 8941 list in `Bulwark-Degraded`. */
export function degradedHeader(
  upstream: string,
  degraded: Extract<CallResult<unknown>, { kind: 'degraded' }>,
  traceId: string | undefined,
): string {
  const parameters = [
    `upstream=${quoted(upstream)}`,
    `reason=${quoted(degraded.reason)}`,
    `age=${ageSeconds(degraded.ageMs)}`,
    `policy=${quoted(degraded.policy)}`,
  ];
  if (traceId !== undefined) parameters.push(`trace=${quoted(traceId)}`);
  return `${degraded.mode};${parameters.join(';')}`;
}

/**
 * Headers of a degraded answer. Its age is what it already had at the dependency's cache (`Age` of the remembered
 * answer) and the time it was remembered.
 */
export function degradedMarks(
  upstream: string,
  degraded: Extract<CallResult<unknown>, { kind: 'degraded' }>,
  context: { readonly traceId: string | undefined; readonly rememberedAge: string | null | undefined },
): { [HEADER.degraded]: string; age: string } {
  const rememberedAge =
    degraded.mode === 'last-good' ? (wholeNumber(context.rememberedAge, MAX_AGE_S) ?? 0) : 0;
  const ageMs = degraded.ageMs + rememberedAge * 1_000;
  return {
    [HEADER.degraded]: degradedHeader(upstream, { ...degraded, ageMs }, context.traceId),
    age: String(ageSeconds(ageMs)),
  };
}

/** RFC 9111 §5.1: whole seconds. */
function ageSeconds(ageMs: number): number {
  return Math.max(0, Math.floor(ageMs / 1_000));
}

const TITLES: Record<RejectionReason, string> = {
  'breaker-open': 'The circuit breaker is open',
  'breaker-half-open': 'The circuit breaker is half-open and lets only its probe through',
  'breaker-recovering': 'The circuit breaker is recovering and admits a share of the calls',
  'forced-open': 'The circuit breaker was forced open',
  'bulkhead-full': 'The bulkhead is full',
  'bulkhead-timeout': 'The call waited too long for a place in the bulkhead',
  'retry-budget': 'The retry budget is spent',
  deadline: 'No time was left for the call',
  drill: 'A drill forces this dependency off',
};

/** What a breaker does, in the detail of a problem. */
const BREAKER_STATES: Partial<Record<RejectionReason, string>> = {
  'breaker-open': 'is open',
  'breaker-half-open': 'is half-open and lets only its probe through',
  'breaker-recovering': 'is recovering and admits a share of the calls',
  'forced-open': 'was forced open',
};

/** RFC 9457. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly [extension: string]: string | number;
}

/** An empty policy is none: a call that no policy matches is refused when nothing is left of its caller's deadline. */
export function rejectionProblem(
  service: string,
  rejected: { reason: RejectionReason; detail: string; policy: string },
): Problem {
  return {
    type: `urn:bulwark:problem:${rejected.reason}`,
    title: TITLES[rejected.reason],
    status: rejected.reason === 'deadline' ? 504 : 503,
    detail: rejectionDetail(service, rejected),
    service,
    reason: rejected.reason,
    ...(rejected.policy !== '' && { policy: rejected.policy }),
  };
}

function rejectionDetail(
  service: string,
  { reason, detail, policy }: { reason: RejectionReason; detail: string; policy: string },
): string {
  if (detail === '') return `The call to ${service} was not made.`;
  const state = BREAKER_STATES[reason];
  if (state === undefined) return detail;
  // The detail of a breaker's rejection names the breaker.
  const name = detail.charAt(0).toUpperCase() + detail.slice(1);
  return `${name} for ${service} (policy ${policy.replace(/@\d+$/, '')}) ${state}.`;
}

export function timeoutProblem(end: {
  service: string;
  attempts: number;
  policy: string | undefined;
}): Problem {
  return {
    type: 'urn:bulwark:problem:timeout',
    title: 'The dependency did not answer in time',
    status: 504,
    detail: `The call to ${end.service} had no answer after ${end.attempts} attempt(s).`,
    service: end.service,
    reason: 'timeout',
    ...(end.policy !== undefined && { policy: end.policy }),
  };
}

function quoted(text: string): string {
  // RFC 8941 strings are printable ASCII; anything else would make the whole header unparsable.
  const ascii = text.replace(/[^\x20-\x7e]/g, '?');
  return `"${ascii.replace(/[\\"]/g, '\\$&')}"`;
}

function wholeNumber(value: string | null | undefined, max: number): number | undefined {
  if (!value) return undefined;
  const text = value.trim();
  if (/^-\d+$/.test(text)) return 0;
  return /^\d{1,15}$/.test(text) ? Math.min(Number(text), max) : undefined;
}
