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
  /**
   * What this attempt may take, for the next hop's deadline. Infinity in shadow mode when the caller set no deadline:
   * then no deadline is handed down.
   */
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
  /**
   * The dependency's failure though no status says so: what a plain function threw. Without it an error that names
   * neither status nor transport is nobody's failure (a request that could not even be written).
   */
  readonly failure?: boolean;
  /** The answer itself says a lower layer's retries were used up, or that a guard below rejected it. */
  readonly noRetry?: boolean;
  /** Neither success nor failure of the dependency: a relayed rejection, a caller's own mistake. */
  readonly ignore?: boolean;
  /** False: this answer must not be remembered for last-good (too large, or its sender forbids it). Absent = it may be. */
  readonly keep?: boolean;
}

/**
 * Why there was no fresh answer: a rejection, a failure, a timeout; "refreshing": another call is refreshing this very
 * answer, which is near its greatest age.
 */
export type DegradedReason = RejectionReason | 'failure' | 'timeout' | 'refreshing';

/** `function`: the caller's own stand-in, tried after those of the policy. */
export type DegradedMode = 'last-good' | 'simplified' | 'static' | 'function';

/** How far the caller itself held up the attempt under way: it did not take the answer, or did not send its body. */
export interface CallerHold {
  /** Milliseconds in all, the present hold included; 0 = never. */
  readonly heldMs: number;
  /** It holds the attempt up at this moment. */
  readonly holding: boolean;
}

/**
 * What of a call is used up, so that it cannot be made again. `sent`: its request can be sent no second time.
 * `delivered`: part of its answer has reached the caller; no fallback can stand in either.
 */
export type Spent = 'nothing' | 'sent' | 'delivered';

/**
 * How the engine understands the answers of one transport. Functions that throw are reported as events, and count
 * as if they had said nothing; they cannot break a call.
 */
export interface CallAdapter<T> {
  judge(value: T): Judgement;
  judgeError(error: unknown): Judgement;
  /**
   * Asked when an attempt ends. Time the caller held up is no time of the dependency's, and an attempt that ran out of
   * time by it is nobody's failure. Absent = callers never hold an attempt up.
   */
  callerHold?(): CallerHold;
  /** Asked when an attempt failed or timed out. Absent = `nothing`, always. */
  spent?(): Spent;
  /** False: this transport cannot make an answer of a policy's static one, which is skipped. Absent = it can. */
  readonly makesStatic?: boolean;
  /** Makes the policy's simplified call instead. Absent = the simplified fallback is skipped. */
  simplified?(operation: string, request: CallRequest, attempt: Attempt): Promise<T>;
  /**
   * The caller's own stand-in, asked when no fallback of the policy had an answer, and never under a `required`
   * contract. It has what is left of the call, and a short time in any case. When it throws, the original failure is
   * the call's. Absent = none.
   */
  fallback?(cause: CallFailure<T>, reason: DegradedReason): T | Promise<T>;
}

/** The adapter of callers who want a value, and not a result to look at. */
export interface ValueAdapter<T> extends CallAdapter<T> {
  /** What the caller gets for an end that is not fresh: a value, or what this throws. */
  conclude(result: Exclude<CallResult<T>, { kind: 'fresh' }>): T;
}

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
      /** The remembered, simplified or stand-in answer; absent for static. */
      readonly value: T | undefined;
      readonly fixed:
        { readonly status: number; readonly body: string; readonly contentType: string } | undefined;
      /** Age of the data in milliseconds; 0 for all but last-good. */
      readonly ageMs: number;
      readonly reason: DegradedReason;
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
      /**
       * The caller ended it: by its signal, whose reason `error` is, or, when `timedOut` too, by holding the attempt up
       * until its time was used.
       */
      readonly cancelled: boolean;
      readonly attempts: number;
      /**
       * The layer above must not retry: retries were allowed and all were used, their budget was spent, or the answer
       * itself came from below with such a mark.
       */
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
