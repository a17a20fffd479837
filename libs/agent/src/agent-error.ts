import type { RejectionReason } from '@bulwark/resilience';

/** Everything the SDK throws by itself. `code` is stable; messages are for people. */
export abstract class BulwarkError extends Error {
  abstract readonly code: string;
}

/** A function of the SDK was called with arguments that can never work; `problems` names all of them. */
export class ArgumentError extends BulwarkError {
  readonly code = 'BULWARK_ARGUMENT';
  constructor(
    readonly problems: readonly string[],
    /** What was called. */
    readonly called = 'connect',
  ) {
    super(`${called}: ${problems.join('; ')}`);
    this.name = 'ArgumentError';
  }
}

/** The control plane refused this agent: a clashing instance, a bad name, no right. Thrown with `failOnRefusal` only. */
export class RefusedError extends BulwarkError {
  readonly code = 'BULWARK_REFUSED';
  /** gRPC status name, such as "ALREADY_EXISTS". */
  readonly grpcStatus: string;
  constructor(refusal: { grpcStatus: string; message: string; hint: string }) {
    super(
      `the control plane refused this agent (${refusal.grpcStatus}): ${refusal.message}. ${refusal.hint}`,
    );
    this.name = 'RefusedError';
    this.grpcStatus = refusal.grpcStatus;
  }
}

/** A guard refused the call, or nothing was left of its deadline; no attempt of it is under way, and the dependency is not to blame. */
export class RejectedError extends BulwarkError {
  readonly code = 'BULWARK_REJECTED';
  readonly service: string;
  readonly reason: RejectionReason;
  /** When a later try may be admitted, milliseconds; undefined = unknown. */
  readonly retryAfterMs: number | undefined;
  /** Numbers a person needs: in flight, waiting, limits. Empty = none. */
  readonly detail: string;
  /** "namespace/name@generation". Empty = no policy matches the call, and its deadline had passed. */
  readonly policy: string;
  readonly attempts: number;
  constructor(rejection: {
    service: string;
    reason: RejectionReason;
    retryAfterMs: number | undefined;
    detail: string;
    policy: string;
    attempts: number;
  }) {
    const detail = rejection.detail === '' ? '' : `: ${rejection.detail}`;
    const by = rejection.policy === '' ? '' : ` by ${rejection.policy}`;
    super(`call to ${rejection.service} rejected${by}, ${rejection.reason}${detail}`);
    this.name = 'RejectedError';
    this.service = rejection.service;
    this.reason = rejection.reason;
    this.retryAfterMs = rejection.retryAfterMs;
    this.detail = rejection.detail;
    this.policy = rejection.policy;
    this.attempts = rejection.attempts;
  }
}

/** The call, or its last attempt, ran out of time. `cause` is what the last attempt threw, when it threw. */
export class DeadlineError extends BulwarkError {
  readonly code = 'BULWARK_DEADLINE';
  readonly service: string;
  readonly policy: string | undefined;
  readonly attempts: number;
  constructor(end: { service: string; policy: string | undefined; attempts: number; cause?: unknown }) {
    super(`call to ${end.service} timed out after ${end.attempts} attempt(s)`, { cause: end.cause });
    this.name = 'DeadlineError';
    this.service = end.service;
    this.policy = end.policy;
    this.attempts = end.attempts;
  }
}
