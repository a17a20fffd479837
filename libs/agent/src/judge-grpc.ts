import type { Judgement } from '@bulwark/resilience';
import { type Metadata, status as GrpcStatus } from '@grpc/grpc-js';
import { HEADER, readRejection, type ReadHeader } from './headers.js';

/** The metadata that travels with gRPC calls and their ends; `grpc-timeout` is the transport's own. */
export const GRPC_METADATA = {
  attempt: HEADER.attempt,
  idempotencyKey: HEADER.idempotencyKey,
  /** Milliseconds to wait before a retry, -1 = do not retry; gRFC A6. */
  pushback: 'grpc-retry-pushback-ms',
  rejected: HEADER.rejected,
  degraded: HEADER.degraded,
} as const;

/** gRFC A6: no retry, said by the answer itself. */
export const PUSHBACK_NEVER = '-1';

const OK: Judgement = { grpcStatus: 'OK' };

/** The name of a status code; a number gRPC does not know is UNKNOWN, as the specification says. */
export function grpcStatusName(code: number): string {
  return GrpcStatus[code] ?? 'UNKNOWN';
}

/**
 * What the end of a gRPC call means, from its status code and its trailing metadata. `grpc-retry-pushback-ms` is a lower
 * bound of the wait, or, negative or unreadable, forbids the retry (gRFC A6). A rejection relayed from a guard below
 * is nobody's failure, and is not retried unless it is one of a single instance.
 */
export function judgeGrpc(code: number, read: ReadHeader): Judgement {
  if (code === 0) return OK;
  const { rejected, noRetry } = readRejection(read(GRPC_METADATA.rejected));
  const retryAfterMs = parsePushbackMs(read(GRPC_METADATA.pushback));
  return {
    grpcStatus: grpcStatusName(code),
    noRetry: noRetry || retryAfterMs === 'never',
    ignore: rejected,
    ...(typeof retryAfterMs === 'number' && { retryAfterMs }),
  };
}

/** What a thrown `ServiceError` means, made by whatever copy of grpc-js; undefined when it is none. */
export function judgeGrpcError(error: object): Judgement | undefined {
  if (!('code' in error) || typeof error.code !== 'number' || !('details' in error)) return undefined;
  if (GrpcStatus[error.code] === undefined) return undefined;
  const metadata = 'metadata' in error ? error.metadata : undefined;
  return judgeGrpc(error.code, isMetadata(metadata) ? readMetadata(metadata) : () => undefined);
}

/** The first text value of a name; binary values are not read. */
export function readMetadata(metadata: Pick<Metadata, 'get'>): ReadHeader {
  return (name) => metadata.get(name).find((value) => typeof value === 'string');
}

function isMetadata(value: unknown): value is Pick<Metadata, 'get'> {
  return typeof value === 'object' && value !== null && 'get' in value && typeof value.get === 'function';
}

/** Undefined = nothing was said. A number too large to be meant as one cannot be read. */
function parsePushbackMs(value: string | null | undefined): number | 'never' | undefined {
  if (value === undefined || value === null) return undefined;
  return /^\d{1,15}$/.test(value.trim()) ? Number(value) : 'never';
}
