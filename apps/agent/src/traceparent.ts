import { randomFillSync } from 'node:crypto';

/** The part of a W3C Trace Context that calls are joined by. */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits, not all zero: the caller's span. */
  readonly parentId: string;
}

/** The trace of one call. */
export interface CallTrace extends TraceContext {
  /** The `traceparent` of a trace that begins here; undefined = the caller's own is passed on as it is. */
  readonly made: string | undefined;
}

/** W3C Trace Context §3.2: version 00 ends with its flags, later versions may add what this one does not read. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;
const NO_TRACE = '0'.repeat(32);
const NO_PARENT = '0'.repeat(16);

/** Undefined = absent, or not valid: then a new trace begins here. */
export function readTraceparent(header: string | undefined): TraceContext | undefined {
  const match = header === undefined ? null : TRACEPARENT.exec(header);
  if (match === null) return undefined;
  const [, version, traceId = NO_TRACE, parentId = NO_PARENT, more] = match;
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  return traceId === NO_TRACE || parentId === NO_PARENT ? undefined : { traceId, parentId };
}

const TRACE_BYTES = 16;
const MADE_BYTES = TRACE_BYTES + 8;
/** Randomness is fetched for many at once: a system call for each would cost more than the rest of it. */
const pool = Buffer.alloc(MADE_BYTES * 128);
let taken = pool.length;

/** A new trace, not sampled: that nobody traces this call is for its caller to say. */
export function makeTrace(): CallTrace & { readonly made: string } {
  if (taken === pool.length) {
    randomFillSync(pool);
    taken = 0;
  }
  const traceId = pool.toString('hex', taken, taken + TRACE_BYTES);
  const parentId = pool.toString('hex', taken + TRACE_BYTES, taken + MADE_BYTES);
  taken += MADE_BYTES;
  return { traceId, parentId, made: `00-${traceId}-${parentId}-00` };
}

/** The trace of a call that came with this `traceparent`; a new one where it has none that is valid. */
export function traceOf(header: string | readonly string[] | undefined): CallTrace {
  const given = typeof header === 'string' ? readTraceparent(header) : undefined;
  return given === undefined ? makeTrace() : { ...given, made: undefined };
}
