import { setTimeout as sleep } from 'node:timers/promises';

export interface OpenLoop<T> {
  readonly perSecond: number;
  readonly forMs: number;
  /** Of the first call, so that several loops do not all call at the same instants. Default 0. */
  readonly offsetMs?: number;
  readonly call: () => Promise<T>;
}

/**
 * Makes calls at their times, whatever became of the former ones: callers do not slow down because a dependency does.
 * Resolves when the last has begun; a loop that was held up makes up for it. `call` must not reject.
 */
export async function openLoop<T>({
  perSecond,
  forMs,
  offsetMs = 0,
  call,
}: OpenLoop<T>): Promise<Promise<T>[]> {
  const beginMs = performance.now() + offsetMs;
  const calls: Promise<T>[] = [];
  const total = Math.round((perSecond * forMs) / 1000);
  while (calls.length < total) {
    const waitMs = beginMs + (calls.length * 1000) / perSecond - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    else calls.push(call());
  }
  const restMs = beginMs - offsetMs + forMs - performance.now();
  if (restMs > 0) await sleep(restMs);
  return calls;
}
