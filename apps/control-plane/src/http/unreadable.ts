import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { badRequest } from '../errors/api-error.js';
import { statusOf } from '../errors/http-status.js';

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
  const body = JSON.stringify(statusOf(badRequest('this is no HTTP request that can be understood')));
  const head = `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}`;
  socket.end(`${head}\r\nConnection: close\r\n\r\n${body}`);
}
