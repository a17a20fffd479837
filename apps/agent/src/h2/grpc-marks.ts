import {
  GRPC_METADATA,
  HEADER,
  joinMembers,
  PUSHBACK_NEVER,
  readIncomingMarks,
  type Attempt,
  type IncomingMarks,
} from '@bulwark/agent';
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import type { Told } from '../proxied-call.js';
import { MARKS } from '../travelling-marks.js';
import { formatGrpcTimeout, parseGrpcTimeout } from './grpc-timeout.js';
import { listIn, valueOf } from './metadata.js';

/** Said anew to the next hop, whoever the caller is. */
export const REQUEST_MARKS: ReadonlySet<string> = new Set([...MARKS, 'grpc-timeout']);
/** In answers of peers that are not trusted. `grpc-retry-pushback-ms` is gRPC's own, and anyone may say it. */
export const ANSWER_MARKS: ReadonlySet<string> = new Set(MARKS);

/** What a call says of its caller's patience. The deadline is gRPC's own, everything else must be from a trusted peer. */
export function readGrpcMarks(headers: IncomingHttpHeaders, trusted: boolean): IncomingMarks {
  const text = (name: string): string | undefined => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  const { callerAttempt, idempotencyKey } = readIncomingMarks((name) =>
    (trusted && name === HEADER.attempt) || name === HEADER.idempotencyKey ? text(name) : undefined,
  );
  const deadlineMs = parseGrpcTimeout(text('grpc-timeout'));
  return {
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(callerAttempt !== undefined && { callerAttempt }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
}

/** Metadata of one attempt to the next hop. */
export function attemptMetadata(
  { number, timeoutMs }: Pick<Attempt, 'number' | 'timeoutMs'>,
  callerAttempt = 1,
): OutgoingHttpHeaders {
  const highest = Math.max(number, callerAttempt);
  return {
    ...(Number.isFinite(timeoutMs) && { 'grpc-timeout': formatGrpcTimeout(timeoutMs) }),
    ...(highest > 1 && { [GRPC_METADATA.attempt]: String(highest) }),
  };
}

/** What an answer hands upward: its degraded members stand in its headers or its trailers. */
export function toldBy(headers: OutgoingHttpHeaders | undefined, trailers: OutgoingHttpHeaders): Told {
  const degraded = joinMembers(
    headers && listIn(headers, GRPC_METADATA.degraded),
    listIn(trailers, GRPC_METADATA.degraded),
  );
  const pushback = valueOf(trailers, GRPC_METADATA.pushback);
  return { exhausted: pushback?.startsWith('-') === true, degraded };
}

export const EXHAUSTED: OutgoingHttpHeaders = { [GRPC_METADATA.pushback]: PUSHBACK_NEVER };
