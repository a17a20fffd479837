import {
  AttemptTimeoutError,
  type Attempt,
  type CallAdapter,
  type CallRequest,
  type CallResult,
  type Host,
} from '@bulwark/resilience';

type Failed<T> = Extract<CallResult<T>, { kind: 'failed' }>;

/** As a guard refuses it; there is no policy to name. */
const NOTHING_LEFT: Extract<CallResult<never>, { kind: 'rejected' }> = {
  kind: 'rejected',
  reason: 'deadline',
  retryAfterMs: undefined,
  detail: 'nothing is left of the deadline',
  attempts: 0,
  policy: '',
};

/** A call that no policy matches: made once, under the caller's own deadline and cancellation and nothing else. */
export async function passThrough<T>(
  host: Host,
  request: CallRequest,
  run: (attempt: Attempt) => Promise<T>,
  adapter: CallAdapter<T>,
): Promise<CallResult<T>> {
  const { deadlineMs, signal } = request;
  if (signal?.aborted === true)
    return failed({ cancelled: true, error: signal.reason as unknown, attempts: 0 });
  if (deadlineMs !== undefined && deadlineMs <= 0) {
    return NOTHING_LEFT;
  }
  try {
    if (deadlineMs === undefined && signal === undefined)
      return fresh(await run(new UnguardedAttempt(Infinity)));
    return await bounded(host, request, run);
  } catch (error) {
    return failed({ error, retriesExhausted: saysNoRetry(adapter, error) });
  }
}

/** A judge that throws has said nothing. */
function saysNoRetry<T>(adapter: CallAdapter<T>, error: unknown): boolean {
  try {
    return adapter.judgeError(error).noRetry === true;
  } catch {
    return false;
  }
}

/** Ends with whatever comes first: the answer, the deadline, the caller's cancellation. Rejects with what `run` throws. */
function bounded<T>(
  host: Host,
  { deadlineMs, signal }: CallRequest,
  run: (attempt: Attempt) => Promise<T>,
): Promise<CallResult<T>> {
  const attempt = new UnguardedAttempt(deadlineMs ?? Infinity);
  return new Promise((resolve, reject) => {
    let cancelTimer: (() => void) | undefined;
    const aborted = (): void => end(failed<T>({ cancelled: true, error: signal?.reason as unknown }));
    const end = (result: Failed<T>): void => {
      cleanUp();
      resolve(result);
      attempt.abort(result.error);
    };
    const cleanUp = (): void => {
      cancelTimer?.();
      signal?.removeEventListener('abort', aborted);
    };
    signal?.addEventListener('abort', aborted, { once: true });
    if (deadlineMs !== undefined) {
      const late = (): void => end(failed<T>({ timedOut: true, error: new AttemptTimeoutError(deadlineMs) }));
      cancelTimer = host.after(deadlineMs, late);
    }
    // A function that throws before it gives a promise is as one whose promise is rejected.
    new Promise<T>((started) => started(run(attempt)))
      .finally(cleanUp)
      .then((value) => resolve(fresh(value)), reject);
  });
}

/** Its signal exists from the first read on only. */
class UnguardedAttempt implements Attempt {
  readonly number = 1;
  readonly probe = false;
  readonly timeoutMs: number;
  #controller: AbortController | undefined;
  #over: { readonly reason: unknown } | undefined;

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#over !== undefined) this.#controller.abort(this.#over.reason);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#over = { reason };
    this.#controller?.abort(reason);
  }
}

function fresh<T>(value: T): CallResult<T> {
  return { kind: 'fresh', value, attempts: 1, policy: undefined };
}

function failed<T>(parts: Partial<Failed<T>>): Failed<T> {
  return {
    kind: 'failed',
    value: undefined,
    error: undefined,
    timedOut: false,
    cancelled: false,
    attempts: 1,
    retriesExhausted: false,
    policy: undefined,
    ...parts,
  };
}
