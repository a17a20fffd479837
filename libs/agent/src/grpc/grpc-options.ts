import type { CallOptions, StatusObject } from '@grpc/grpc-js';
import type { DegradedReason } from '@bulwark/resilience';

/** What a method's definition says of repeating it; descriptor.proto's `idempotency_level`. */
export type IdempotencyLevel = 'NO_SIDE_EFFECTS' | 'IDEMPOTENT' | 'IDEMPOTENCY_UNKNOWN';

/**
 * A gRPC call is an HTTP POST, and policies treat it as one: it is retried when it carries an idempotency key or the
 * policy's `methods` name POST. A method that is declared repeatable counts as what HTTP calls such a method.
 */
export const METHOD_OF_LEVEL: Readonly<Record<IdempotencyLevel, string>> = {
  NO_SIDE_EFFECTS: 'GET',
  IDEMPOTENT: 'PUT',
  IDEMPOTENCY_UNKNOWN: 'POST',
};

/** For all calls of one client. */
export interface GrpcOptions {
  /** What policies call the dependency. Default: the host name of the channel's target. */
  readonly service?: string;
  /** What may be repeated, by operation ("pkg.Service/Method"); see `idempotencyLevels`. Absent = unknown. */
  readonly idempotency?: Readonly<Record<string, IdempotencyLevel>>;
  /**
   * Remember the answers of unary methods without side effects, where the policy has `lastGood`. Only for clients whose
   * calls name who asks in their metadata: credentials that are added below (`CallCredentials`) are not seen. Default
   * false.
   */
  readonly remember?: boolean;
}

/** Why a stand-in is asked for. */
export interface GrpcFailure {
  /** What the caller would have got. */
  readonly status: StatusObject;
  readonly reason: DegradedReason;
}

/** What only Bulwark needs to know of one call; everything has a default. */
export interface GrpcGuard {
  readonly service?: string;
  /** Ends the call with CANCELLED, as `call.cancel()` does. */
  readonly signal?: AbortSignal;
  /** Travels as metadata `idempotency-key`; a call with one may be retried. Default: that metadata, when set. */
  readonly idempotencyKey?: string;
  readonly idempotency?: IdempotencyLevel;
  readonly attributes?: Readonly<Record<string, string>>;
  /** Remember this unary answer, or do not; over the client's `remember`. */
  readonly remember?: boolean;
  /** Remember this unary answer under this name, which must name what is asked and who asks. */
  readonly cacheKey?: string;
  /** Makes the answer when there is none; for calls with a single answer. It is marked as degraded. */
  readonly fallback?: (failure: GrpcFailure) => unknown;
}

/** Options that the interceptor finds again. */
interface GuardedCallOptions extends CallOptions {
  readonly bulwark?: GrpcGuard;
}

/** Call options that carry a guard: `client.get(request, metadata, grpcGuard({ signal }, { deadline }), callback)`. */
export function grpcGuard(guard: GrpcGuard, options: CallOptions = {}): CallOptions {
  const guarded: GuardedCallOptions = { ...options, bulwark: guard };
  return guarded;
}

export function guardOf(options: CallOptions): GrpcGuard {
  return (options as GuardedCallOptions).bulwark ?? {};
}

/** "/pkg.Service/Method" is the operation "pkg.Service/Method". */
export function operationOf(path: string): string {
  return path.startsWith('/') ? path.slice(1) : path;
}
