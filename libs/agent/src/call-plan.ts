import type { Attempt, CallAdapter, CallRequest, CallResult, GuardSettings } from '@bulwark/resilience';
import { ArgumentError } from './agent-error.js';
import { deadlineProblem } from './call-options.js';

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

/** What an HTTP adapter needs of the agent. */
export interface CallEnvironment {
  readonly plan: (service: string, operation: string) => CallPlan;
  /** Marks of the call this process is answering at the moment. */
  readonly inherited: () => { deadlineMs?: number; callerAttempt?: number };
  /** Whether the marks of answers from this host count. */
  readonly believes: (host: string) => boolean;
  readonly traceId: () => string | undefined;
  readonly unixMs: () => number;
  /** What an answer's `Bulwark-Degraded` says goes upward with the answer of the call being answered. */
  readonly noteDegraded: (list: string | null | undefined) => void;
}

/** What only Bulwark needs to know of an HTTP call; everything has a default. */
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

/** The part of a call's description that is the caller's to give. Throws `ArgumentError`. */
export function describeCall(
  guard: FetchGuard,
): Pick<CallRequest, 'deadlineMs' | 'idempotencyKey' | 'attributes'> {
  const { deadlineMs, idempotencyKey, attributes } = guard;
  const late = deadlineProblem(deadlineMs);
  if (late !== undefined) throw new ArgumentError([late], 'bulwark');
  return {
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(attributes !== undefined && { attributes }),
  };
}

/** "GET /v1/recs/popular" of a policy, in place of the call's own method and path; its query stays when none is named. */
export function simplifiedTarget(
  operation: string,
  call: { readonly method: string; readonly url: URL },
): { readonly method: string; readonly url: URL } {
  const [first = '', ...rest] = operation.split(' ');
  const path = rest.length === 0 ? first : rest.join(' ');
  const method = rest.length === 0 ? call.method : first.toUpperCase();
  return { method, url: new URL(path.includes('?') ? path : `${path}${call.url.search}`, call.url) };
}
