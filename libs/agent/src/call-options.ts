import type { Attempt, CallRequest, CallResult } from '@bulwark/resilience';
import type { FallbackCause } from './call-outcome.js';
import type { plainAdapter } from './judge.js';
import { quote } from './option-shapes.js';

export interface CallOptions<T> {
  /** "GET /v1/recs" or "pkg.Service/Method"; what policies name. Default "". */
  readonly operation?: string;
  /** Upper-case HTTP method; absent = not idempotent, so one attempt unless there is an idempotency key. */
  readonly method?: string;
  readonly signal?: AbortSignal;
  readonly idempotencyKey?: string;
  /**
   * What the caller has left, milliseconds; 0 or less = nothing, and the call is refused. Default: what the call being
   * answered has left, if it said.
   */
  readonly deadlineMs?: number;
  /** The caller's attempt number. Default: that of the call being answered. */
  readonly callerAttempt?: number;
  /** Names the answer for last-good; it must name who asks. Absent = not remembered. */
  readonly cacheKey?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  /** What an answer or error means; undefined = the default: an answer is a success, an error a failure. */
  readonly judge?: Parameters<typeof plainAdapter<T>>[0];
  /**
   * Stands in where the policy's fallbacks had no answer, and makes a value of its static one. Never under a `required`
   * contract, in shadow mode, or without a policy. When it throws, the call ends with its original error. Absent = a
   * static answer cannot serve this call.
   */
  readonly fallback?: (cause: FallbackCause) => T | Promise<T>;
  /** Hears how the call ended, for marks and logs. What it throws is reported, and changes nothing of the call. */
  readonly onResult?: (result: CallResult<T>) => void;
}

/** What a call is made of, as it was given: callers without types may give anything. */
interface GivenCall {
  readonly service: unknown;
  readonly options: unknown;
  readonly attempt: unknown;
}

const FUNCTIONS = ['judge', 'fallback', 'onResult'] as const;

/** Whether a call can be made at all; asked for every call, so it makes nothing. */
export function isCall<T>(
  service: string,
  options: CallOptions<T>,
  attempt: (attempt: Attempt) => Promise<T>,
): boolean {
  if (typeof attempt !== 'function' || typeof service !== 'string') return false;
  if (typeof options !== 'object' || (options as unknown) === null) return false;
  const { deadlineMs, judge, fallback, onResult } = options;
  return (
    isDeadline(deadlineMs) &&
    isFunctionOrNone(judge) &&
    isFunctionOrNone(fallback) &&
    isFunctionOrNone(onResult)
  );
}

/** Everything that is wrong with the arguments of `bulwark.call`, each with what is expected. */
export function callProblems({ service, options, attempt }: GivenCall): string[] {
  const problems: string[] = [];
  if (typeof service !== 'string') problems.push(`service ${quote(service)} must be the dependency's name`);
  if (typeof options === 'function' && typeof attempt === 'object' && attempt !== null) {
    return [
      ...problems,
      'the function comes last, after the options: call(service, options, (attempt) => …)',
    ];
  }
  if (typeof options !== 'object' || options === null) {
    problems.push(`options ${quote(options)} must be an object, such as {} or { operation: 'get' }`);
  } else {
    problems.push(...optionProblems(options as Record<string, unknown>));
  }
  if (typeof attempt !== 'function') {
    problems.push(
      `the third argument ${quote(attempt)} must be the function that makes one attempt: call(service, options, (attempt) => …)`,
    );
  }
  return problems;
}

/** A deadline that is no number is a mistake of the program: taken as none, it would let the call wait for ever. */
export function deadlineProblem(deadlineMs: unknown): string | undefined {
  if (isDeadline(deadlineMs)) return undefined;
  return `deadlineMs ${quote(deadlineMs)} must be a number of milliseconds`;
}

function optionProblems(options: Record<string, unknown>): string[] {
  const late = deadlineProblem(options['deadlineMs']);
  const noFunctions = FUNCTIONS.filter((name) => !isFunctionOrNone(options[name])).map(
    (name) => `${name} ${quote(options[name])} must be a function`,
  );
  return late === undefined ? noFunctions : [late, ...noFunctions];
}

function isDeadline(value: unknown): value is CallRequest['deadlineMs'] {
  return value === undefined || (typeof value === 'number' && !Number.isNaN(value));
}

function isFunctionOrNone(value: unknown): boolean {
  return value === undefined || typeof value === 'function';
}
