import {
  AttemptTimeoutError,
  type Attempt,
  type CallAdapter,
  type CallRequest,
  type CallResult,
  type Host,
} from '@bulwark/resilience';

type Failed<T> = Extract<CallResult<T>, { kind: 'failed' }>;

/** A call that no policy matches: made once, under the caller's own deadline and cancellation and nothing else. */
export function passThrough<T>(
  host: Host,
  request: CallRequest,
  run: (attempt: Attempt) => Promise<T>,
  adapter: CallAdapter<T>,
): Promise<CallResult<T>> {
  const { deadlineMs, signal } = request;
  const base: Failed<T> = {
    kind: 'failed',
    value: undefined,
    error: undefined,
    timedOut: false,
    cancelled: false,
    attempts: 1,
    retriesExhausted: false,
    policy: undefined,
  };
  if (signal?.aborted === true) {
    return Promise.resolve({ ...base, cancelled: true, error: signal.reason as unknown, attempts: 0 });
  }
  if (deadlineMs !== undefined && deadlineMs <= 0) {
    return Promise.resolve({ ...base, timedOut: true, error: new AttemptTimeoutError(0), attempts: 0 });
  }
  return new Promise((settle) => {
    const controller = new AbortController();
    let cancelTimer: (() => void) | undefined;
    let over = false;
    const finish = (result: CallResult<T>): void => {
      if (over) return;
      over = true;
      cancelTimer?.();
      signal?.removeEventListener('abort', aborted);
      settle(result);
    };
    const aborted = (): void => {
      finish({ ...base, cancelled: true, error: signal?.reason });
      controller.abort(signal?.reason);
    };
    signal?.addEventListener('abort', aborted, { once: true });
    if (deadlineMs !== undefined) {
      cancelTimer = host.after(deadlineMs, () => {
        const error = new AttemptTimeoutError(deadlineMs);
        finish({ ...base, timedOut: true, error });
        controller.abort(error);
      });
    }
    const attempt = { number: 1, timeoutMs: deadlineMs ?? Infinity, signal: controller.signal, probe: false };
    // A function that throws before it returns a promise is treated as one whose promise is rejected.
    new Promise<T>((resolve) => resolve(run(attempt))).then(
      (value) => finish({ kind: 'fresh', value, attempts: 1, policy: undefined }),
      (error: unknown) => {
        const retriesExhausted = adapter.judgeError(error).noRetry === true;
        finish({ ...base, error, retriesExhausted });
      },
    );
  });
}
