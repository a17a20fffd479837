import { HEADER, readIncomingMarks, type IncomingMarks } from '@bulwark/agent';
import type { IncomingMessage } from 'node:http';
import type { Patience } from './trace-join.js';

/** Marks of requests and answers alike: those of a peer that is not trusted go no further. */
export const MARKS: readonly string[] = [
  HEADER.deadline,
  HEADER.attempt,
  HEADER.retry,
  HEADER.rejected,
  HEADER.degraded,
];

/** What a request says of its caller's patience; of one that is not trusted nothing but its idempotency key. */
export function readMarks({ headers }: Pick<IncomingMessage, 'headers'>, trusted: boolean): IncomingMarks {
  return readIncomingMarks((name) => {
    const value = trusted || name === HEADER.idempotencyKey ? headers[name] : undefined;
    return typeof value === 'string' ? value : undefined;
  });
}

/** Whether a request has marks at all. */
export function hasMarks({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return MARKS.some((name) => headers[name] !== undefined);
}

/** When the patience that marks tell of ends, monotonic; Infinity = no deadline was named. */
export function patienceOf(marks: IncomingMarks, arrivedAtMs: number): Patience {
  return { endsAtMs: arrivedAtMs + (marks.deadlineMs ?? Infinity), attempt: marks.callerAttempt ?? 1 };
}

/**
 * The marks of an outbound call: its own, which came at `arrivedAtMs`, and those of the inbound call it is made for. The
 * smaller deadline counts, less what has passed, and the higher attempt number.
 */
export function inheritMarks(
  own: IncomingMarks,
  arrivedAtMs: number,
  inbound: Patience | undefined,
  nowMs: number,
): IncomingMarks {
  const patience = patienceOf(own, arrivedAtMs);
  const endsAtMs = Math.min(patience.endsAtMs, inbound?.endsAtMs ?? Infinity);
  const callerAttempt = Math.max(patience.attempt, inbound?.attempt ?? 1);
  const { idempotencyKey } = own;
  return {
    ...(endsAtMs !== Infinity && { deadlineMs: Math.max(0, endsAtMs - nowMs) }),
    ...(callerAttempt > 1 && { callerAttempt }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
}
