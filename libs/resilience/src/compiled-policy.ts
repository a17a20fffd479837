import type { FallbackSettings, GuardSettings, RetrySettings } from './settings.js';
import type { CallRequest, Judgement } from './call.js';

/** Settings with what every call would otherwise work out anew. One per generation, shared by its calls. */
export class CompiledPolicy {
  /** "namespace/name@generation". */
  readonly label: string;
  readonly lastGood: (FallbackSettings & { kind: 'last-good' }) | undefined;
  readonly simplified: (FallbackSettings & { kind: 'simplified' }) | undefined;

  constructor(readonly settings: GuardSettings) {
    this.label = `${settings.policy}@${settings.generation}`;
    for (const fallback of settings.fallbacks) {
      if (fallback.kind === 'last-good') this.lastGood ??= fallback;
      if (fallback.kind === 'simplified') this.simplified ??= fallback;
    }
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
