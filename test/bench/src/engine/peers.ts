import {
  bulkhead,
  circuitBreaker,
  ExponentialBackoff,
  handleAll,
  retry,
  SamplingBreaker,
  timeout,
  TimeoutStrategy,
  wrap,
} from 'cockatiel';
import CircuitBreaker from 'opossum';

/** cockatiel's breaker over a window, with its bulkhead. */
export function cockatielPair(windowMs: number, threshold = 0.5, minimumRps = 1) {
  const breaker = new SamplingBreaker({ threshold, duration: windowMs, minimumRps });
  return wrap(circuitBreaker(handleAll, { halfOpenAfter: 3_600_000, breaker }), bulkhead(100, 20));
}

/** The same four things as a guard of ours: deadline, retry, breaker, bulkhead. */
export function cockatielFour() {
  return wrap(
    timeout(5000, TimeoutStrategy.Aggressive),
    retry(handleAll, { maxAttempts: 2, backoff: new ExponentialBackoff() }),
    cockatielPair(10_000),
  );
}

/** cockatiel's pair with a breaker that counts every failure and never opens. */
export function cockatielCounting(windowMs: number) {
  return cockatielPair(windowMs, 0.999_999, 1_000_000_000);
}

/** opossum's breaker with its own bulkhead; `timeout: false` = no timer. */
export function opossum(run: () => Promise<number>, windowMs: number, opens: boolean) {
  return new CircuitBreaker(run, {
    timeout: false,
    capacity: 100,
    rollingCountTimeout: windowMs,
    rollingCountBuckets: 10,
    resetTimeout: 3_600_000,
    errorThresholdPercentage: opens ? 50 : 101,
    volumeThreshold: 20,
  });
}
