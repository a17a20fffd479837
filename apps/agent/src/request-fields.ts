import type { IncomingMessage } from 'node:http';
import { namedByConnection, type FieldNames, type RawHeaders } from './hop-headers.js';
import { fieldLine } from './upstream/request-head.js';

/** Methods whose requests have a body as a rule: one without says so, or some servers refuse it with 411. */
const WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/** The field lines of a request for its upstream: without those of `dropped` and those that Connection names. */
export function fieldLines(raw: RawHeaders, dropped: FieldNames): string {
  const names = dropped.with(namedByConnection(raw));
  let lines = '';
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    if (!names.has(name)) lines += fieldLine(name, raw[index + 1] ?? '');
  }
  return lines;
}

/** What is said of the body beside the caller's own Content-Length. */
export function framingLines({ method = '', headers }: IncomingMessage): string {
  if (headers['transfer-encoding'] !== undefined) return 'Transfer-Encoding: chunked\r\n';
  const bare = headers['content-length'] === undefined && WITH_BODY.has(method);
  return bare ? 'Content-Length: 0\r\n' : '';
}
