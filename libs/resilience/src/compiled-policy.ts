import type {
  BreakerSettings,
  FailureSettings,
  FallbackSettings,
  GuardSettings,
  RetrySettings,
} from './settings.js';
import type { CallRequest, Judgement } from './call.js';

/** Of a timeout from here on a tick of 10 ms is 2 % at most. */
const SHORT_TIMEOUT_MS = 500;

/** Settings with what every call would otherwise work out anew. One per generation, shared by its calls. */
export class CompiledPolicy {
  /** "namespace/name@generation". */
  readonly label: string;
  readonly lastGood: (FallbackSettings & { kind: 'last-good' }) | undefined;
  readonly simplified: (FallbackSettings & { kind: 'simplified' }) | undefined;

  /** Here and not in the settings, whose shapes differ from policy to policy: every call reads them. */
  readonly breaker: BreakerSettings | undefined;
  readonly failures: FailureSettings;
  /** One key for all calls: nobody need be asked for it. */
  readonly oneKey: boolean;
  /** A call may be made directly; see direct-call.ts. */
  readonly direct: boolean;
  /** Of a first attempt when the caller has no deadline of its own. */
  readonly attemptMs: number;
  /** Durations decide something, or a tick is a large part of a timeout: the clock is read at both ends of each call. */
  readonly precise: boolean;

  constructor(readonly settings: GuardSettings) {
    this.label = `${settings.policy}@${settings.generation}`;
    this.breaker = settings.breaker;
    this.failures = settings.failures;
    this.oneKey = settings.breaker?.per.join() === 'target';
    // A limit that follows the load needs the exact duration of every attempt.
    this.direct = settings.mode === 'enforce' && settings.bulkhead?.adaptive === undefined;
    const { totalMs, attemptMs } = settings.timeout;
    this.attemptMs = attemptMs ?? totalMs;
    this.precise =
      settings.breaker?.trip.slowRate !== undefined ||
      Math.min(totalMs, attemptMs ?? totalMs) < SHORT_TIMEOUT_MS;
    for (const fallback of settings.fallbacks) {
      if (fallback.kind === 'last-good') this.lastGood ??= fallback;
      if (fallback.kind === 'simplified') this.simplified ??= fallback;
    }
  }

  /** Of a first attempt under a caller's deadline; what is no number is none. */
  attemptUnder(deadlineMs: number): number {
    return deadlineMs < this.attemptMs ? deadlineMs : this.attemptMs;
  }

  /**
   * The retry rules of this call; undefined = one attempt: no retry in the policy, the caller is itself retrying
   * (layers do not multiply), or the call may not be repeated.
   */
  retryFor(request: CallRequest): RetrySettings | undefined {
    const { retry } = this.settings;
    if (retry === undefined || (request.callerAttempt ?? 1) > 1) return undefined;
    if (request.idempotencyKey !== undefined) return retry;
    return request.method !== undefined && retry.methods.has(request.method) ? retry : undefined;
  }
}

/** Whether an attempt that ended like this is of the kind that is retried. Undefined = it timed out. */
export function isRetryable(retry: RetrySettings, judgement: Judgement | undefined): boolean {
  if (judgement === undefined) return retry.failures.has('timeout');
  if (judgement.noRetry === true) return false;
  const { httpStatus, grpcStatus, transport } = judgement;
  return (
    (httpStatus !== undefined && retry.statuses.has(httpStatus)) ||
    (grpcStatus !== undefined && retry.grpc.has(grpcStatus)) ||
    (transport !== undefined && retry.failures.has(transport))
  );
}
