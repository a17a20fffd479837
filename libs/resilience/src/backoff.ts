import type { RetrySettings } from './settings.js';

/**
 * The wait before retry `retry` (1 = the first): uniform in 0..ceiling, where the ceiling doubles up to `maxMs`
 * ("full jitter"; a fixed delay makes all callers come back together). `sample` is uniform in 0..1.
 * Any retry number is safe: the exponent is bounded before it is used.
 */
export function backoffMs(retry: number, backoff: RetrySettings['backoff'], sample: number): number {
  // 2^53 ms is beyond any maximum a policy may name.
  const exponent = Math.min(Math.max(retry - 1, 0), 53);
  const ceiling = Math.min(backoff.maxMs, backoff.baseMs * 2 ** exponent);
  return backoff.jitter === 'full' ? sample * ceiling : ceiling;
}

/**
 * The wait with the server's Retry-After as its lower bound. Negative, infinite and absent ones say nothing.
 * A huge one is not cut: it will not fit the deadline, and then no retry is made.
 */
export function retryWaitMs(backoff: number, retryAfterMs: number | undefined): number {
  if (retryAfterMs === undefined || !Number.isFinite(retryAfterMs) || retryAfterMs < 0) return backoff;
  return Math.max(backoff, retryAfterMs);
}
