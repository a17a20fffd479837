import { setTimeout as sleep } from 'node:timers/promises';

export interface EventuallyOptions {
  /** Milliseconds until it gives up; default 5,000. The check runs at least once. */
  readonly withinMs?: number;
  /** Milliseconds between two checks; default 20. */
  readonly everyMs?: number;
  /** What is waited for, for the error message. */
  readonly what?: string;
}

/**
 * Repeats `check` until it neither throws nor answers `false`, and answers its value. After `withinMs` it throws an
 * error whose cause is the last failure. A check that hangs is the caller's to bound.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  options: EventuallyOptions = {},
): Promise<Exclude<T, false>> {
  const { withinMs = 5000, everyMs = 20, what = 'the expected state' } = options;
  const deadline = performance.now() + withinMs;
  for (;;) {
    let failure: unknown;
    try {
      const value = await check();
      if (value !== false) return value as Exclude<T, false>;
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= deadline) {
      const last = failure instanceof Error ? `: ${failure.message}` : '';
      throw new Error(`Waited ${withinMs} ms for ${what}${last}`, { cause: failure });
    }
    await sleep(Math.min(everyMs, Math.max(1, deadline - performance.now())));
  }
}
