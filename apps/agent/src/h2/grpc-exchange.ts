import {
  constants,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from 'node:http2';
import type { CallTarget } from '../call-target.js';
import { encodeGrpcMessage, parseGrpcStatus, statusOfHttp, statusOfReset } from './grpc-status.js';
import { passedOn, valueOf } from './metadata.js';
import type { RequestFeed } from './request-feed.js';
import type { UpstreamSession } from './upstream-session.js';
import type { UpstreamSessions } from './upstream-sessions.js';

/** How one attempt ended, with a status in any case. */
export interface GrpcAnswer {
  /** The answer's headers; undefined = it was trailers only. */
  readonly headers: OutgoingHttpHeaders | undefined;
  /** grpc-status, grpc-message and the rest, as they came. */
  readonly trailers: OutgoingHttpHeaders;
  readonly code: number;
}

/** Where the answer goes while it comes. */
export interface AnswerSink {
  /** Headers have come, and messages may follow much later. */
  readonly onHeaders: (headers: OutgoingHttpHeaders) => void;
  /** The first and each further part of the messages; false = no more until `resume` is called. */
  readonly onData: (headers: OutgoingHttpHeaders, chunk: Buffer, resume: () => void) => boolean;
}

export interface ExchangeTask {
  readonly target: CallTarget;
  /** Without pseudo-headers. */
  readonly headers: OutgoingHttpHeaders;
  readonly feed: RequestFeed;
  readonly signal: AbortSignal;
  readonly sink: AnswerSink;
  /** Names in the answer that go no further. */
  readonly dropped: (remoteAddress: string | undefined) => ReadonlySet<string>;
  /** Some of them were there. */
  readonly onDropped?: (remoteAddress: string | undefined) => void;
}

/** RFC 9113 §8.7: a stream refused so was not processed, and may be tried again at once. */
const MAX_REFUSALS = 2;

/**
 * One attempt at an upstream, to its end: the request is sent as it comes, messages of the answer go to the sink. Resolves
 * with the status; rejects with a fault of the connection, or with the signal's reason.
 */
export async function exchange(upstreams: UpstreamSessions, task: ExchangeTask): Promise<GrpcAnswer> {
  for (let refusals = 0; ; refusals += 1) {
    const session = await upstreams.acquire(task.target);
    try {
      const end = await exchangeOn(session, task);
      if (end !== 'refused') return end;
    } finally {
      session.leave();
    }
    if (refusals >= MAX_REFUSALS || !task.feed.whole) {
      return ownAnswer(statusOfReset(constants.NGHTTP2_REFUSED_STREAM), 'The upstream refused the stream');
    }
  }
}

function exchangeOn(session: UpstreamSession, task: ExchangeTask): Promise<GrpcAnswer | 'refused'> {
  task.signal.throwIfAborted();
  const { target, feed } = task;
  const head = {
    ':method': 'POST',
    ':scheme': target.secure ? 'https' : 'http',
    ':authority': target.authority,
    ':path': `${target.basePath}${target.path}`,
    ...task.headers,
  };
  let stream: ClientHttp2Stream;
  try {
    stream = session.request(head, feed.empty);
  } catch (error) {
    // Between its choice and now the connection has ended.
    if (!session.alive) return Promise.resolve('refused');
    throw error;
  }
  return new Promise((resolve, reject) => {
    new Exchange(stream, session, task, { resolve, reject });
  });
}

interface Settle {
  readonly resolve: (answer: GrpcAnswer | 'refused') => void;
  readonly reject: (error: unknown) => void;
}

class Exchange {
  readonly #stream: ClientHttp2Stream;
  readonly #session: UpstreamSession;
  readonly #task: ExchangeTask;
  readonly #settle: Settle;
  readonly #beganAtMs = performance.now();
  readonly #dropped: ReadonlySet<string>;
  #headers: OutgoingHttpHeaders | undefined;
  #trailers: OutgoingHttpHeaders | undefined;
  #error: Error | undefined;
  #over = false;

  constructor(stream: ClientHttp2Stream, session: UpstreamSession, task: ExchangeTask, settle: Settle) {
    this.#stream = stream;
    this.#session = session;
    this.#task = task;
    this.#settle = settle;
    this.#dropped = task.dropped(session.remoteAddress);
    stream.on('response', (headers, flags, raw) => this.#headed(headers, flags, raw));
    stream.on('trailers', (trailers: IncomingHttpHeaders, _flags: number, raw: string[]) =>
      this.#trailed(trailers, raw),
    );
    stream.on('data', (chunk: Buffer) => this.#arrived(chunk));
    stream.on('end', () => this.#read());
    stream.on('error', (error: Error) => {
      this.#error = error;
    });
    stream.on('close', () => this.#finish());
    task.signal.addEventListener('abort', this.#onAbort, { once: true });
    task.feed.attach(stream);
  }

  readonly #onAbort = (): void => {
    if (this.#over) return;
    this.#close();
    this.#session.doubt(this.#beganAtMs);
    this.#session.reset(this.#stream);
    this.#settle.reject(this.#task.signal.reason);
  };

  #headed(
    headers: IncomingHttpHeaders & IncomingHttpStatusHeader,
    flags: number,
    raw: readonly string[],
  ): void {
    if (this.#over) return;
    this.#session.heard();
    const status = headers[':status'] ?? 0;
    const own = this.#own(headers, raw);
    const alone = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    if (alone || headers['grpc-status'] !== undefined) {
      this.#trailers = { ...own, ...(valueOf(own, 'grpc-status') === undefined && unnamed(status)) };
      return;
    }
    if (status !== 200 || !isGrpc(headers['content-type'])) {
      // No messages can be in what follows.
      this.#end({ headers: undefined, ...answerOf({ ...unnamed(status) }) });
      this.#session.reset(this.#stream);
      return;
    }
    this.#headers = own;
    this.#task.sink.onHeaders(own);
  }

  #trailed(trailers: IncomingHttpHeaders, raw: readonly string[]): void {
    this.#trailers = this.#own(trailers, raw);
    if (this.#stream.readableEnded) this.#finish();
  }

  #own(headers: IncomingHttpHeaders, raw: readonly string[]): OutgoingHttpHeaders {
    for (const name of this.#dropped) {
      if (headers[name] === undefined) continue;
      this.#task.onDropped?.(this.#session.remoteAddress);
      break;
    }
    return passedOn(raw, headers, this.#dropped);
  }

  #arrived(chunk: Buffer): void {
    if (this.#over || this.#headers === undefined) return;
    this.#session.heard();
    const stream = this.#stream;
    if (!this.#task.sink.onData(this.#headers, chunk, () => stream.resume())) stream.pause();
  }

  /** The messages have ended. What ended them follows at once; the stream's own end does only where the request has ended. */
  #read(): void {
    if (this.#trailers !== undefined || !this.#stream.writableEnded) setImmediate(() => this.#finish());
  }

  /** At the end of the messages, which the trailers may follow; or at the end of everything. */
  #finish(): void {
    if (this.#over) return;
    const { rstCode, closed } = this.#stream;
    if (this.#trailers !== undefined) {
      this.#end({ headers: this.#headers, ...answerOf(this.#trailers) });
      if (!closed) this.#stream.close(constants.NGHTTP2_NO_ERROR);
      return;
    }
    if (this.#session.lost || this.#broken) return this.#fail(resetError(this.#error));
    if (rstCode === constants.NGHTTP2_REFUSED_STREAM && this.#headers === undefined) {
      return this.#end('refused');
    }
    const code = this.#error === undefined && rstCode === constants.NGHTTP2_NO_ERROR ? undefined : rstCode;
    const ended =
      code === undefined
        ? unnamed(200)
        : status(statusOfReset(code), `The upstream reset the stream with code ${code}`);
    this.#end({ headers: this.#headers, ...answerOf(ended) });
    if (!closed) this.#session.reset(this.#stream);
  }

  /** The stream ended with an error that is not its own. */
  get #broken(): boolean {
    return (
      this.#error !== undefined && 'code' in this.#error && this.#error.code !== 'ERR_HTTP2_STREAM_ERROR'
    );
  }

  #end(answer: GrpcAnswer | 'refused'): void {
    this.#close();
    this.#settle.resolve(answer);
  }

  #fail(error: unknown): void {
    this.#close();
    this.#settle.reject(error);
  }

  #close(): void {
    this.#over = true;
    this.#task.signal.removeEventListener('abort', this.#onAbort);
    this.#task.feed.detach(this.#stream);
  }
}

/** An answer that this proxy gives where the upstream gave none. */
export function ownAnswer(code: number, message: string, more: OutgoingHttpHeaders = {}): GrpcAnswer {
  return { headers: undefined, ...answerOf({ ...status(code, message), ...more }) };
}

export function isGrpc(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc($|[+;])/i.test(contentType);
}

function answerOf(trailers: OutgoingHttpHeaders): Pick<GrpcAnswer, 'trailers' | 'code'> {
  const code = parseGrpcStatus(valueOf(trailers, 'grpc-status'));
  // A status that cannot be read is UNKNOWN, as one that is not there.
  return code === undefined
    ? { trailers: { ...trailers, ...unnamed(200) }, code: statusOfHttp(200) }
    : { trailers, code };
}

/** Of an answer that ended without grpc-status. */
function unnamed(httpStatus: number): OutgoingHttpHeaders {
  return status(
    statusOfHttp(httpStatus),
    `The upstream answered with HTTP status ${httpStatus} and no grpc-status`,
  );
}

function status(code: number, message: string): OutgoingHttpHeaders {
  return { 'grpc-status': String(code), 'grpc-message': encodeGrpcMessage(message) };
}

/** Recognised by `judgeError` as a connection that broke: the upstream may have seen the call. */
function resetError(cause: Error | undefined): Error {
  return Object.assign(new Error('the connection to the upstream broke', { cause }), { code: 'ECONNRESET' });
}
