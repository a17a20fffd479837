import {
  Agent as HttpAgent,
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
} from 'node:http';
import { CommandError, Interrupted, UsageError } from '../command-error.js';

/** One request to the server; `node:http` rather than fetch, which costs 30 ms to load. */
export interface Exchange {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Longest silence on the connection, in milliseconds: before the answer and within it. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The server could not be asked, or went away while it answered. Whether a write was made is not known. */
export class ConnectionError extends CommandError {
  /** A sentence part: "nothing listens there". */
  readonly why: string;

  constructor(url: string, cause: NodeJS.ErrnoException) {
    const why = reasonText(cause);
    super(`error: the server ${url} could not be reached: ${why}`, {
      cause,
      hint: `Is the server running? Start one with: ./bulwark server. Another address: --server URL, or BULWARK_SERVER.`,
    });
    this.why = why;
    this.name = 'ConnectionError';
  }
}

function reasonText(cause: NodeJS.ErrnoException): string {
  switch (cause.code) {
    case 'ECONNREFUSED':
      return 'nothing listens there (connection refused)';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'its name is not known';
    case 'ECONNRESET':
      return 'it closed the connection';
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return 'there is no answer from that address';
    case 'HPE_INVALID_CONSTANT':
      return 'what answers there speaks no HTTP/1.1; is this the gRPC port? The command wants the HTTP port';
    default:
      return cause.message;
  }
}

export class Connection {
  private readonly base: URL;
  private readonly agent = new HttpAgent({ keepAlive: true, maxSockets: 8 });

  constructor(readonly url: string) {
    this.base = parseServer(url);
  }

  /** The head of the answer, its body not read yet. @throws ConnectionError, Interrupted */
  async open(exchange: Exchange): Promise<IncomingMessage> {
    const { signal } = exchange;
    if (signal.aborted) throw new Interrupted();
    const call = await this.request(exchange);
    return new Promise((resolve, reject) => {
      const abort = () => void call.destroy(new Interrupted());
      signal.addEventListener('abort', abort, { once: true });
      call.once('close', () => signal.removeEventListener('abort', abort));
      call.once('response', resolve);
      call.once('error', (error) => reject(this.failure(error)));
      call.setTimeout(exchange.timeoutMs, () => {
        const message = `it did not answer within ${exchange.timeoutMs / 1_000} s`;
        call.destroy(Object.assign(new Error(message), { code: 'BULWARK_TIMEOUT' }));
      });
      call.end(exchange.body);
    });
  }

  /** What an error of the connection is for people. */
  failure(error: unknown): CommandError {
    if (error instanceof CommandError) return error;
    return new ConnectionError(this.url, error as NodeJS.ErrnoException);
  }

  close(): void {
    this.agent.destroy();
  }

  private async request({ method, path, headers, body }: Exchange): Promise<ClientRequest> {
    const { protocol, hostname, port, pathname } = this.base;
    const options = {
      method,
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: `${pathname.replace(/\/$/, '')}${path}`,
      headers: {
        ...headers,
        ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      },
    };
    if (protocol === 'http:') return httpRequest({ ...options, agent: this.agent });
    const { request } = await import('node:https');
    return request(options);
  }
}

function parseServer(text: string): URL {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  let url: URL | undefined;
  try {
    url = new URL(withScheme);
  } catch {
    url = undefined;
  }
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new UsageError(`"${text}" is not the URL of a server`, 'Example: --server http://127.0.0.1:9443');
  }
  return url;
}
