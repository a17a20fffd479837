import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { IncomingCall } from './http-listener.js';
import { endToEnd } from './hop-headers.js';
import type { AnswerHead } from './upstream/answer-head.js';

/**
 * Passes an interim answer (1xx) on to the caller, before the answer itself. "100 Continue" goes to the caller that waits
 * for it only, and none to one of HTTP/1.0, which does not know them (RFC 9110 §15.2).
 */
export function relayInformation(
  head: AnswerHead,
  { request, response, expectsContinue }: Pick<IncomingCall, 'request' | 'response' | 'expectsContinue'>,
): void {
  if (request.httpVersion === '1.0' || response.headersSent) return;
  if (head.status !== 100) writeInterim(response, head);
  else if (expectsContinue) response.writeContinue();
}

/** Node writes some interim answers, and each in its own way; they all look alike on the wire. */
function writeInterim(response: ServerResponse, { status, headers }: AnswerHead): void {
  const kept = endToEnd(headers);
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
  for (let at = 0; at + 1 < kept.length; at += 2) head += `${kept[at]}: ${kept[at + 1]}\r\n`;
  // No socket: an earlier answer has this connection still, and interim ones cannot wait.
  response.socket?.write(`${head}\r\n`, 'latin1');
}
