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

/** Of a request: its first line and its fields. */
export const HEAD_MAX_BYTES = 32 * 1024;

const LIMITS: Readonly<Record<string, { readonly status: number; readonly detail: string }>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    detail: `The head of the request (its first line and its fields) is larger than ${HEAD_MAX_BYTES / 1024} KiB, the most that is taken.`,
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    detail: 'The chunk extensions of the request are larger than 16 KiB, the most that is taken.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    detail: 'The head of the request had not arrived in the time it may take.',
  },
};

/** What the HTTP parser made nothing of. `begun`: an answer is on its way already, which can only be broken off. */
export function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex, begun: boolean): void {
  if (begun || !socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const limit = LIMITS[error.code ?? ''];
  const reason = 'reason' in error && typeof error.reason === 'string' ? error.reason : error.message;
  writeRawProblem(socket, {
    status: limit?.status ?? 400,
    word: 'bad-request',
    title: 'The request cannot be read',
    detail: limit?.detail ?? `This is no HTTP/1.1 request that can be passed on: ${reason}.`,
  });
}
