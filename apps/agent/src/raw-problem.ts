import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** How long a caller may take to fetch the answer and to close its side. */
const LINGER_MS = 1_000;

interface RawProblem {
  readonly status: number;
  readonly word: string;
  readonly title: string;
  readonly detail: string;
}

/** Answers with a problem where there is no response object, and closes the connection. */
export function writeRawProblem(socket: Duplex, { status, word, title, detail }: RawProblem): void {
  const body = JSON.stringify({ type: `urn:bulwark:problem:${word}`, title, status, detail, reason: word });
  socket.on('error', () => undefined);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  // Read on, or the answer could be lost to a reset; but not for a caller that never closes.
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}

const STATUS_OF: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** What the HTTP parser made nothing of. `begun`: an answer is on its way already, which can only be broken off. */
export function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex, begun: boolean): void {
  if (begun || !socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const reason = 'reason' in error && typeof error.reason === 'string' ? error.reason : error.message;
  writeRawProblem(socket, {
    status: STATUS_OF[error.code ?? ''] ?? 400,
    word: 'bad-request',
    title: 'The request cannot be read',
    detail: `This is no HTTP/1.1 request that can be passed on: ${reason}.`,
  });
}
