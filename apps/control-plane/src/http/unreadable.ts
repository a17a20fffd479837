import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { badRequest } from '../errors/api-error.js';
import { statusOf, type Status } from '../errors/http-status.js';

/** A path whose %-encoding is broken: no route was looked for yet, so the filter of errors never sees it. */
export function answerBadPath(_error: Error, _request: FastifyRequest, reply: FastifyReply): void {
  const status = statusOf(badRequest('the path is not correctly %-encoded'));
  void reply.code(400).type('application/json').send(status);
}

/** What is no HTTP request at all, an unknown method among it: answered on the bare connection, which then closes. */
export function answerNoRequest(error: Error, socket: Socket): void {
  if ((error as NodeJS.ErrnoException).code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const { line, status } = answerTo((error as NodeJS.ErrnoException).code);
  const body = JSON.stringify(status);
  const head = `HTTP/1.1 ${line}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}`;
  socket.end(`${head}\r\nConnection: close\r\n\r\n${body}`);
}

/** What Kubernetes has no reason word for keeps BadRequest's, under its own code. */
function answerTo(code: string | undefined): { line: string; status: Status } {
  const of = (message: string): Status => statusOf(badRequest(message));
  if (code === 'HPE_HEADER_OVERFLOW') {
    const status = { ...of("the request's headers are larger than this server takes"), code: 431 };
    return { line: '431 Request Header Fields Too Large', status };
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { line: '408 Request Timeout', status: { ...of('the request did not come in time'), code: 408 } };
  }
  return { line: '400 Bad Request', status: of('this is no HTTP request that can be understood') };
}
