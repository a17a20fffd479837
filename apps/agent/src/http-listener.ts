import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { AcceptedWork, NoWork } from './accepted-work.js';
import type { Refused } from './call-target.js';
import { writeProblem } from './problem-answer.js';
import { HEAD_MAX_BYTES, refuseUnreadable, writeRawProblem } from './raw-problem.js';

/** One call that was taken on. */
export interface IncomingCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The caller waits for "100 Continue" before it sends the body. */
  readonly expectsContinue: boolean;
  /** The caller's marks are believed, and marks are told to it. */
  readonly trusted: boolean;
}

export interface ListenerOptions {
  /** Of this side of the sidecar, whatever protocols it speaks. */
  readonly work: AcceptedWork;
  /** Whether a peer's marks count; undefined = its address is not known any more. */
  readonly trusts: (remoteAddress: string | undefined) => boolean;
  /** Answers a call. The call is over when the response is closed. */
  readonly answer: (call: IncomingCall) => void;
  /** Headers of the refusal of a call that is not taken on. */
  readonly refusalMarks: (reason: NoWork, trusted: boolean) => Readonly<Record<string, string>>;
  /** What a caller is told that asks for a tunnel. */
  readonly noTunnel: (target: string) => string;
  /** How long a request's head may take, milliseconds; found out up to a fifth later. Default 15,000. */
  readonly headWithinMs?: number;
}

const HEAD_WITHIN_MS = 15_000;

/** The HTTP/1.1 listener of one side: takes calls on or refuses them, and answers what cannot be read. */
export class HttpListener {
  readonly server: Server;
  readonly #options: ListenerOptions;
  /** Answers under way, by connection: with pipelining there may be several. */
  readonly #answers = new WeakMap<Duplex, Set<ServerResponse>>();

  constructor(options: ListenerOptions) {
    this.#options = options;
    const headWithinMs = options.headWithinMs ?? HEAD_WITHIN_MS;
    this.server = createServer({
      maxHeaderSize: HEAD_MAX_BYTES,
      headersTimeout: headWithinMs,
      // Node looks for late heads this often; its default of 30 s would be the limit in truth.
      connectionsCheckingInterval: Math.ceil(headWithinMs / 5),
      // A large body may take long; who waits for it has a deadline.
      requestTimeout: 0,
      keepAliveTimeout: 65_000,
      noDelay: true,
      // Checked by request-check, for an answer that explains itself.
      requireHostHeader: false,
    });
    this.server.maxConnections = 20_000;
    this.server.on('request', (request, response) => this.#receive(request, response, false));
    this.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
      this.#receive(request, response, true),
    );
    this.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      response.on('error', () => undefined);
      const detail = `The sidecar knows one expectation, "Expect: 100-continue", and not ${JSON.stringify(request.headers.expect)}.`;
      writeRefused(response, { kind: 'refused', status: 417, word: 'expectation', detail });
    });
    this.server.on('connect', (request: IncomingMessage, socket: Duplex) => {
      writeRawProblem(socket, {
        status: 501,
        word: 'tunnel',
        title: 'The sidecar makes no tunnels',
        detail: options.noTunnel(request.url ?? ''),
      });
    });
    this.server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
      const answers = [...(this.#answers.get(socket) ?? [])];
      refuseUnreadable(
        error,
        socket,
        answers.some((response) => response.headersSent),
      );
    });
  }

  /** Stops listening and cuts every connection. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeAllConnections();
    await closed;
  }

  #receive(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const { work, trusts, answer } = this.#options;
    response.on('error', () => undefined);
    const trusted = trusts(request.socket.remoteAddress);
    const reason = work.refusal();
    if (reason !== undefined) return this.#refuse(response, reason, trusted);
    const done = work.take();
    const answers = this.#answersOn(request.socket);
    answers.add(response);
    response.once('close', () => {
      answers.delete(response);
      done();
    });
    answer({ request, response, expectsContinue, trusted });
  }

  #answersOn(socket: Socket): Set<ServerResponse> {
    const known = this.#answers.get(socket);
    if (known !== undefined) return known;
    const answers = new Set<ServerResponse>();
    this.#answers.set(socket, answers);
    // With pipelining Node 20 tells the answer whose turn it is that the connection is gone, and not those behind it.
    socket.once('close', () => setImmediate(() => answers.forEach(closeUntold)));
    return answers;
  }

  #refuse(response: ServerResponse, reason: NoWork, trusted: boolean): void {
    const detail =
      reason === 'draining'
        ? 'This sidecar is shutting down and takes no new calls.'
        : 'This sidecar does not know its policies yet.';
    const title = 'The sidecar takes no calls now';
    const problem = { type: `urn:bulwark:problem:${reason}`, title, status: 503, detail, reason };
    writeProblem(response, problem, { ...this.#options.refusalMarks(reason, trusted), Connection: 'close' });
  }
}

function closeUntold(response: ServerResponse): void {
  response.destroy();
  response.emit('close');
}

/** Answers a request that no side may pass on. */
export function writeRefused(response: ServerResponse, { status, word, detail }: Refused): void {
  const title = 'The sidecar cannot make this call';
  const problem = { type: `urn:bulwark:problem:${word}`, title, status, detail, reason: word };
  // What a caller sends after a request that was misunderstood is not to be trusted.
  writeProblem(response, problem, { Connection: 'close' });
}
