import { HEADER } from '@bulwark/agent';
import type { IncomingMessage } from 'node:http';
import type { CallTarget } from './call-target.js';
import { FieldNames, HOP_BY_HOP, listOf, withMember } from './hop-headers.js';
import { fieldLines, framingLines } from './request-fields.js';
import { fieldLine } from './upstream/request-head.js';

/** Said anew to the next hop. */
const SAID_ANEW = new FieldNames([...HOP_BY_HOP, 'host', 'expect', 'via', HEADER.deadline, HEADER.attempt]);
const SAID_ANEW_WITH_TRACE = SAID_ANEW.with(['traceparent', 'tracestate']);
export interface OutboundHead {
  readonly request: IncomingMessage;
  readonly target: CallTarget;
  /** This proxy's name in Via. */
  readonly via: string;
  /** Sent in place of what the request has; absent = the request's own goes on. */
  readonly traceparent?: string;
}

/** A request as it is written: the caller's own, or a simplified one. */
export interface OutboundRequest {
  readonly method: string;
  readonly path: string;
  /** False: the caller's body does not belong to it. */
  readonly withBody: boolean;
}

/** Of "GET /v1/recs/popular": its own method, and the caller's body only where it is the caller's method. */
export function simplifiedRequest(operation: string, callersMethod: string): OutboundRequest {
  const at = operation.indexOf(' ');
  const method = at < 0 ? callersMethod : operation.slice(0, at);
  return { method, path: operation.slice(at + 1), withBody: method === callersMethod };
}

/** What describes a body, and goes when it does. */
export const OF_A_BODY = ['content-length', 'content-type', 'content-encoding', 'content-range', 'trailer'];

/** The field lines of the caller's request for its upstream; those of `without` (lower case) and the framing left out. */
export function fieldsDown(
  { request, target, via, traceparent }: OutboundHead,
  without: readonly string[] = [],
): string {
  const raw = request.rawHeaders;
  // The state belongs to the trace that was not valid: W3C Trace Context §3.3.1.
  const dropped = (traceparent === undefined ? SAID_ANEW : SAID_ANEW_WITH_TRACE).with([...without]);
  return (
    fieldLine('Host', target.authority) +
    fieldLines(raw, dropped) +
    fieldLine('Via', withMember(listOf(raw, 'via'), via)) +
    (without.length > 0 ? '' : framingLines(request)) +
    (traceparent === undefined ? '' : fieldLine('traceparent', traceparent))
  );
}
