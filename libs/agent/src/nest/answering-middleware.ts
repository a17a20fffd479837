import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Bulwark } from '../bulwark.js';
import { inCallersContext } from '../callers-context.js';
import { joinMembers } from '../degraded-members.js';
import { HEADER, type HeaderReader } from '../headers.js';

/** Whether the marks of a request from this address are believed. */
export type Trusted = (remoteAddress: string | undefined) => boolean;

/**
 * Answers each request within `bulwark.answering`, and writes what its calls came to on the answer's head. It sees Node's
 * own objects, which express extends and fastify hands to middleware.
 */
export function answeringMiddleware(bulwark: Bulwark, trusted: Trusted) {
  return (request: IncomingMessage, response: ServerResponse, next: () => void): void => {
    const believed = trusted(request.socket.remoteAddress);
    const read: HeaderReader = (name) => (believed ? request.headers[name] : undefined);
    bulwark.answering(read, () => {
      beforeHead(response, () => bulwark.answerHeaders());
      next();
    });
  };
}

/** The headers are asked for when the head is written: only then is it known what was degraded. */
function beforeHead(response: ServerResponse, marks: () => Record<string, string>): void {
  const writeHead = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse;
  // The head may be written from anywhere; what it says belongs to this request.
  const marksHere = inCallersContext(marks);
  response.writeHead = (...head: unknown[]) => {
    const written = head.length > 1 ? head[head.length - 1] : undefined;
    for (const [name, value] of Object.entries(marksHere())) {
      setMark(response, written, { name, value });
    }
    return writeHead(...head);
  };
}

/** What the handler relays of a level below stays, beside what is known here. */
function setMark(
  response: ServerResponse,
  written: unknown,
  { name, value }: { name: string; value: string },
): void {
  const given = valueIn(written, name);
  const joined =
    name === HEADER.degraded
      ? joinMembers(given ?? response.getHeader(name)?.toString(), value)
      : (given ?? value);
  if (joined === undefined) return;
  if (given === undefined) response.setHeader(name, joined);
  else (written as Record<string, string>)[nameIn(written as object, name) ?? name] = joined;
}

/** `writeHead` takes headers as an object or as a flat list; a list is left as it is. */
function valueIn(written: unknown, name: string): string | undefined {
  if (typeof written !== 'object' || written === null || Array.isArray(written)) return undefined;
  const found = nameIn(written, name);
  const value: unknown = found === undefined ? undefined : (written as Record<string, unknown>)[found];
  return typeof value === 'string' ? value : undefined;
}

function nameIn(written: object, name: string): string | undefined {
  return Object.keys(written).find((key) => key.toLowerCase() === name);
}
