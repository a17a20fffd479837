import type { CallFailure, CallResult, ValueAdapter } from './call.js';
import type { LastGood } from './last-good-cache.js';
import type { Refusal } from './permit.js';

export type Failed<T> = CallFailure<T> & { kind: 'failed' };

/** The value of a call for who wants no result to look at. */
export async function concluded<T>(ending: Promise<CallResult<T>>, adapter: ValueAdapter<T>): Promise<T> {
  const result = await ending;
  return result.kind === 'fresh' ? result.value : adapter.conclude(result);
}

/** A call that failed, before anything is known of its retries. */
export function failedCall<T>(
  end: { readonly value: T | undefined; readonly error: unknown },
  call: { readonly attempts: number; readonly policy: string },
): Failed<T> {
  return {
    kind: 'failed',
    value: end.value,
    error: end.error,
    timedOut: false,
    cancelled: false,
    attempts: call.attempts,
    retriesExhausted: false,
    policy: call.policy,
  };
}

/** A call whose attempt may not be made. */
export function rejectedCall<T>(
  { reason, retryAfterMs }: Refusal,
  call: { readonly detail: string; readonly attempts: number; readonly policy: string },
): CallFailure<T> {
  const { detail, attempts, policy } = call;
  return { kind: 'rejected', reason, retryAfterMs, detail, attempts, policy };
}

/** A call that gets the remembered answer at once, since another one is refreshing it. */
export function refreshingCall<T>(
  { value, ageMs }: LastGood<unknown>,
  policy: string,
): CallResult<T> & { kind: 'degraded' } {
  const cause = failedCall<T>({ value: undefined, error: undefined }, { attempts: 0, policy });
  const reason = 'refreshing';
  // The key is the adapter's and names everything the answer depends on, its type included.
  return {
    kind: 'degraded',
    mode: 'last-good',
    value: value as T,
    fixed: undefined,
    ageMs,
    reason,
    cause,
    attempts: 0,
    policy,
  };
}
