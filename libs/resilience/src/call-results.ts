import type { CallFailure, CallResult, ValueAdapter } from './call.js';

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
