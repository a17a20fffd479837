import { Metadata, status as Status, type StatusObject } from '@grpc/grpc-js';
import { AttemptTimeoutError, type CallResult, type RejectionReason } from '@bulwark/resilience';
import { degradedMarks, rejectionProblem } from '../headers.js';
import { GRPC_METADATA, PUSHBACK_NEVER } from '../judge-grpc.js';
import { type GrpcAnswer, GrpcEndError } from './grpc-end.js';

type Failed = Extract<CallResult<unknown>, { kind: 'failed' }>;

/** What a guard's refusal is called in gRPC: try later, too much of it, or too late. */
const REJECTED_AS: Readonly<Record<RejectionReason, Status>> = {
  'breaker-open': Status.UNAVAILABLE,
  'breaker-half-open': Status.UNAVAILABLE,
  'breaker-recovering': Status.UNAVAILABLE,
  'forced-open': Status.UNAVAILABLE,
  drill: Status.UNAVAILABLE,
  'bulkhead-full': Status.RESOURCE_EXHAUSTED,
  'bulkhead-timeout': Status.RESOURCE_EXHAUSTED,
  'retry-budget': Status.RESOURCE_EXHAUSTED,
  deadline: Status.DEADLINE_EXCEEDED,
};

/** A pushback is a signed 32-bit number. */
const MAX_PUSHBACK_MS = 2 ** 31 - 1;

/** What the application hears at the end. */
export interface Outcome {
  readonly status: StatusObject;
  readonly headers?: Metadata | undefined;
  readonly message?: unknown;
  /** Of a remembered answer: its message is made anew of them. */
  readonly bytes?: Buffer | undefined;
}

/** `received`: how many messages of a stream the application has had. */
export function outcomeOf(
  service: string,
  result: CallResult<GrpcAnswer>,
  { traceId, received = 0 }: { readonly traceId?: string | undefined; readonly received?: number } = {},
): Outcome {
  switch (result.kind) {
    case 'fresh':
      return { ...result.value, bytes: undefined };
    case 'degraded': {
      if (result.value === undefined) return outcomeOf(service, result.cause, { traceId, received });
      const marks = degradedMarks(service, result, { traceId, rememberedAge: undefined });
      const status = marked(result.value.status, GRPC_METADATA.degraded, marks[GRPC_METADATA.degraded]);
      return { ...result.value, status, ...(result.mode !== 'last-good' && { bytes: undefined }) };
    }
    case 'rejected':
      return { status: rejectionOf({ ...result, details: rejectionProblem(service, result).detail }) };
    case 'failed': {
      const { error, retriesExhausted } = result;
      const status = error instanceof GrpcEndError ? error.status : failureStatus(service, result, received);
      return { status: retriesExhausted ? exhausted(status) : status };
    }
  }
}

/** A guard's refusal, with its reason and, where it is known, the wait after which a call may be admitted. */
export function rejectionOf(rejected: {
  readonly reason: RejectionReason;
  readonly details: string;
  readonly retryAfterMs?: number | undefined;
}): StatusObject {
  const { reason, details, retryAfterMs } = rejected;
  const metadata = new Metadata();
  metadata.set(GRPC_METADATA.rejected, reason);
  if (retryAfterMs !== undefined) {
    const waitMs = Math.min(Math.max(0, Math.ceil(retryAfterMs)), MAX_PUSHBACK_MS);
    metadata.set(GRPC_METADATA.pushback, String(waitMs));
  }
  return { code: REJECTED_AS[reason], details, metadata };
}

/** Of a call that ran out of time, or whose attempt could not even be begun. */
function failureStatus(service: string, failed: Failed, received: number): StatusObject {
  const { error, timedOut, attempts } = failed;
  if (!timedOut) return plainStatus(Status.INTERNAL, messageOf(error));
  const after = error instanceof AttemptTimeoutError ? ` within ${Math.round(error.timeoutMs)} ms` : '';
  const had = received === 0 ? 'had no answer' : `had sent ${received} message(s), and was not at its end`;
  return plainStatus(
    Status.DEADLINE_EXCEEDED,
    `Deadline exceeded: ${service} ${had}${after}, after ${attempts} attempt(s)`,
  );
}

export function plainStatus(code: Status, details: string): StatusObject {
  return { code, details, metadata: new Metadata() };
}

/** Tells the layer above that retries were used up. */
function exhausted(end: StatusObject): StatusObject {
  return marked(end, GRPC_METADATA.pushback, PUSHBACK_NEVER);
}

function marked(end: StatusObject, name: string, value: string): StatusObject {
  // The metadata may be the application's own, or remembered.
  const metadata = end.metadata.clone();
  metadata.set(name, value);
  return { ...end, metadata };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
