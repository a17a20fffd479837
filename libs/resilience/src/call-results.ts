import type { CallFailure } from './call.js';

export type Failed<T> = CallFailure<T> & { kind: 'failed' };

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
