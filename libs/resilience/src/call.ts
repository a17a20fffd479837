import type { RejectionReason } from './outcome.js';

/** One logical call, as its adapter describes it. */
export interface CallRequest {
  /** "GET /v1/recs" or "pkg.Service/Method". */
  readonly operation: string;
  /** Upper-case HTTP method; decides, with `idempotencyKey`, whether a retry is allowed. Absent = not idempotent. */
  readonly method?: string;
  readonly idempotencyKey?: string;
  /** What the caller has left, in milliseconds. Absent = the policy's total only. */
  readonly deadlineMs?: number;
  /** The caller's attempt number (`Bulwark-Attempt`); above 1 this layer makes one attempt. Absent = 1. */
  readonly callerAttempt?: number;
  readonly signal?: AbortSignal;
  /** Names the answer for last-good: method, full URL, authorisation, varied headers. Absent = never cached. */
  readonly cacheKey?: string;
  /** Values for `per: call.ATTRIBUTE`. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** What one attempt is told. */
export interface Attempt {
  /** Counts from 1. */
  readonly number: number;
  /** What this attempt may take, for the next hop's deadline. */
  readonly timeoutMs: number;
  /** Aborts at the attempt's timeout or the caller's cancellation. Made on first read. */
  readonly signal: AbortSignal;
  /** This attempt is the fleet's (or this process's) probe. */
  readonly probe: boolean;
}

/** How an adapter tells the engine what an answer or error means. */
export interface Judgement {
  /** Absent when the attempt was not HTTP. */
  readonly httpStatus?: number;
  /** gRPC status name. */
  readonly grpcStatus?: string;
  /** A transport fault. */
  readonly transport?: 'connect' | 'reset';
  /** Parsed Retry-After in milliseconds; negative, junk and absent are the same. */
  readonly retryAfterMs?: number;
  /** The answer itself says a lower layer's retries were used up, or that a guard below rejected it. */
  readonly noRetry?: boolean;
  /** Neither success nor failure of the dependency: a relayed rejection, a caller's own mistake. */
  readonly ignore?: boolean;
}

export type DegradedMode = 'last-good' | 'simplified' | 'static';

/** How a logical call ended. */
export type CallResult<T> =
  | {
      readonly kind: 'fresh';
      readonly value: T;
      readonly attempts: number;
      readonly policy: string | undefined;
    }
  | {
      readonly kind: 'degraded';
      readonly mode: DegradedMode;
      /** The remembered or simplified answer; absent for static. */
      readonly value: T | undefined;
      readonly fixed:
        { readonly status: number; readonly body: string; readonly contentType: string } | undefined;
      /** Age of the data in milliseconds; 0 for static and simplified. */
      readonly ageMs: number;
      /** Why there was no fresh answer: a rejection, or "failure", "timeout". */
      readonly reason: RejectionReason | 'failure' | 'timeout';
      /** What the caller would have got. */
      readonly cause: CallFailure<T>;
      readonly attempts: number;
      /** "namespace/name@generation". */
      readonly policy: string;
    }
  | CallFailure<T>;

export type CallFailure<T> =
  | {
      readonly kind: 'failed';
      /** The dependency's own last answer (a 503, say), when there was one. */
      readonly value: T | undefined;
      /** What the last attempt threw, when it threw. */
      readonly error: unknown;
      readonly timedOut: boolean;
      readonly attempts: number;
      /** Retries were allowed, and all were used. */
      readonly retriesExhausted: boolean;
      readonly policy: string | undefined;
    }
  | {
      readonly kind: 'rejected';
      readonly reason: RejectionReason;
      /** When a later try may be admitted; absent = unknown. */
      readonly retryAfterMs: number | undefined;
      /** Numbers a person needs: in flight, waiting, limits. */
      readonly detail: string;
      readonly attempts: number;
      readonly policy: string;
    };
