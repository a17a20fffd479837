import { STATUS_CODES, type ClientRequest, type InformationEvent, type ServerResponse } from 'node:http';
import type { IncomingCall } from './http-listener.js';
import { endToEnd } from './hop-headers.js';

/**
 * Passes interim answers (1xx) on to the caller, before the answer itself. "100 Continue" goes to the caller that waits
 * for it only, and none to one of HTTP/1.0, which does not know them (RFC 9110 §15.2).
 */
export function relayInformation(
  upstream: ClientRequest,
  { request, response, expectsContinue }: Pick<IncomingCall, 'request' | 'response' | 'expectsContinue'>,
): void {
  if (request.httpVersion === '1.0') return;
  upstream.on('information', (information) => {
    if (response.headersSent) return;
    if (information.statusCode !== 100) writeInterim(response, information);
    else if (expectsContinue) response.writeContinue();
  });
}

/** Node writes some interim answers, and each in its own way; they all look alike on the wire. */
function writeInterim(
  response: ServerResponse,
  { statusCode, statusMessage, rawHeaders }: InformationEvent,
): void {
  const headers = endToEnd(rawHeaders);
  let head = `HTTP/1.1 ${statusCode} ${statusMessage || (STATUS_CODES[statusCode] ?? '')}\r\n`;
  for (let at = 0; at + 1 < headers.length; at += 2) head += `${headers[at]}: ${headers[at + 1]}\r\n`;
  // No socket: an earlier answer has this connection still, and interim ones cannot wait.
  response.socket?.write(`${head}\r\n`, 'latin1');
}
