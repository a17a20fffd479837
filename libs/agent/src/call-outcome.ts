import type { CallAdapter, CallFailure, CallResult, DegradedReason } from '@bulwark/resilience';
import { DeadlineError, RejectedError } from './agent-error.js';
import { inCallersContext } from './callers-context.js';

/** What a caller's own fallback is told. */
export interface FallbackCause {
  /** The policy's static answer, to be made a value of; undefined = the policy has none. */
  readonly fixed:
    { readonly status: number; readonly body: string; readonly contentType: string } | undefined;
  readonly reason: DegradedReason;
  /** What the call would have thrown; undefined = it was answered, and the answer judged a failure. */
  readonly error: unknown;
}

export type Fallback<T> = (cause: FallbackCause) => T | Promise<T>;

/** The part of an adapter that asks a caller's own fallback. */
export function standInOf<T>(
  service: string,
  fallback: Fallback<T>,
): Pick<CallAdapter<T>, 'fallback' | 'makesStatic'> {
  const ask = (cause: CallFailure<T>, reason: DegradedReason) =>
    fallback({ fixed: undefined, reason, error: errorOf(service, cause) });
  return { makesStatic: true, fallback: inCallersContext(ask) };
}

/** The value of a call, or a rejection with the error it ends with. */
export async function settle<T>(
  service: string,
  result: CallResult<T>,
  fallback: Fallback<T> | undefined,
): Promise<T> {
  if (result.kind === 'degraded' && result.fixed !== undefined && fallback !== undefined) {
    const { fixed, reason, cause } = result;
    try {
      return await fallback({ fixed, reason, error: errorOf(service, cause) });
    } catch {
      return valueOf(service, cause);
    }
  }
  return valueOf(service, result);
}

/** The value of a call nobody stands in for, or throws what it ends with. */
export function valueOf<T>(service: string, result: CallResult<T>): T {
  switch (result.kind) {
    case 'fresh':
      return result.value;
    case 'degraded':
      return result.fixed === undefined ? (result.value as T) : valueOf(service, result.cause);
    case 'failed':
      if (result.value !== undefined) return result.value;
      break;
    case 'rejected':
  }
  // What an attempt threw goes on as it is, whatever it is.
  throw (errorOf(service, result) as Error) ?? new Error(`the call to ${service} failed`);
}

/** What the caller sees thrown: what the attempt threw, as it is; an answer judged a failure threw nothing. */
function errorOf<T>(service: string, failure: CallFailure<T>): unknown {
  if (failure.kind === 'rejected') return new RejectedError({ service, ...failure });
  if (failure.timedOut) return new DeadlineError({ service, ...failure, cause: failure.error });
  return failure.error;
}
