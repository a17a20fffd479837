import { constants, createServer, type Http2Server } from 'node:http2';
import type { IncomingHttpHeaders, OutgoingHttpHeaders, Http2Session, ServerHttp2Stream } from 'node:http2';
import type { AcceptedWork, NoWork } from '../accepted-work.js';
import { endUnwanted } from './caller-stream.js';
import { isGrpc, ownAnswer, type GrpcAnswer } from './grpc-exchange.js';
import { STATUS } from './grpc-status.js';

/** One gRPC call that was taken on. */
export interface IncomingGrpcCall {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  /** Name and value pairs, flat. */
  readonly rawHeaders: readonly string[];
  /** The request has no messages: its head was its end. */
  readonly empty: boolean;
  readonly remoteAddress: string | undefined;
  /** The caller's marks are believed, and marks are told to it. */
  readonly trusted: boolean;
}

export interface GrpcListenerOptions {
  /** Of this side of the sidecar, whatever protocols it speaks. */
  readonly work: AcceptedWork;
  readonly trusts: (remoteAddress: string | undefined) => boolean;
  /** Answers a call. The call is over when its stream is closed. */
  readonly answer: (call: IncomingGrpcCall) => void;
  /** Metadata of the refusal of a call that is not taken on. */
  readonly refusalMarks: (reason: NoWork, trusted: boolean) => OutgoingHttpHeaders;
}

/** Streams of one caller at once; further ones wait at the caller. */
const MAX_STREAMS = 4_096;
/** Bounded by what streams may hold, not by this; the default refuses streams from 10 MB on. */
const SESSION_MEMORY_MB = 1_024;
const STREAM_WINDOW_BYTES = 256 * 1024;
/**
 * Cancelled calls a connection may have: so many at once, and so many a second on and on. Callers whose deadlines pass
 * cancel all their calls; the defaults (1,000 and 33) would end their connection with the calls that go well.
 */
const RESETS = { streamResetBurst: 20_000, streamResetRate: 2_000 };
/** As for HTTP/1.1 heads. */
const HEADERS_MAX_BYTES = 32 * 1024;

/** The cleartext HTTP/2 listener of one side: takes gRPC calls on, and refuses them or anything else with a reason. */
export class GrpcListener {
  readonly server: Http2Server;
  readonly #options: GrpcListenerOptions;
  /** With the addresses of their callers. */
  readonly #sessions = new Map<Http2Session, string | undefined>();

  constructor(options: GrpcListenerOptions) {
    this.#options = options;
    this.server = createServer({
      maxSessionMemory: SESSION_MEMORY_MB,
      ...RESETS,
      settings: {
        maxConcurrentStreams: MAX_STREAMS,
        initialWindowSize: STREAM_WINDOW_BYTES,
        maxHeaderListSize: HEADERS_MAX_BYTES,
      },
    });
    this.server.on('session', (session) => {
      this.#sessions.set(session, session.socket.remoteAddress);
      session.on('error', () => session.destroy());
      session.once('close', () => this.#sessions.delete(session));
    });
    this.server.on('sessionError', () => undefined);
    this.server.on('stream', (stream, headers, flags, raw: string[]) =>
      this.#receive(stream, headers, { flags, raw }),
    );
  }

  /** Asks callers to go elsewhere with new calls (GOAWAY); those under way go on to their end. */
  goAway(): void {
    for (const session of this.#sessions.keys()) session.close();
  }

  /** Cuts every connection. */
  close(): void {
    for (const session of this.#sessions.keys()) session.destroy();
  }

  #receive(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    { flags, raw }: { flags: number; raw: readonly string[] },
  ): void {
    const { work, trusts, answer, refusalMarks } = this.#options;
    stream.on('error', () => undefined);
    // Its caller may have taken it back by now.
    if (stream.destroyed || stream.closed) return;
    if (headers[':method'] !== 'POST' || !isGrpc(headers['content-type'])) return refuseOther(stream);
    const reason = work.refusal();
    const { session } = stream;
    const remoteAddress = session && this.#sessions.get(session);
    const trusted = trusts(remoteAddress);
    if (reason !== undefined) return refuseCall(stream, refusal(reason, refusalMarks(reason, trusted)));
    const done = work.take();
    stream.once('close', done);
    answer({
      stream,
      headers,
      rawHeaders: raw,
      empty: (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0,
      remoteAddress,
      trusted,
    });
  }
}

function refusal(reason: NoWork, marks: OutgoingHttpHeaders): GrpcAnswer {
  const detail =
    reason === 'draining'
      ? 'This sidecar is shutting down and takes no new calls.'
      : 'This sidecar does not know its policies yet.';
  return ownAnswer(STATUS.unavailable, detail, marks);
}

/** Answers a call that is not made. What else its caller sends is not wanted. */
export function refuseCall(stream: ServerHttp2Stream, { trailers }: GrpcAnswer): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...trailers }, { endStream: true });
  endUnwanted(stream);
}

/** HTTP/2 that is not gRPC; the protocol's specification names the status. */
function refuseOther(stream: ServerHttp2Stream): void {
  const status = 415;
  const body = JSON.stringify({
    type: 'urn:bulwark:problem:not-grpc',
    title: 'The sidecar takes gRPC only by HTTP/2',
    status,
    detail:
      'Over cleartext HTTP/2 this sidecar passes gRPC calls on (POST, content-type application/grpc). Make other calls by HTTP/1.1.',
    reason: 'not-grpc',
  });
  stream.respond({ ':status': status, 'content-type': 'application/problem+json' });
  stream.end(body, () => endUnwanted(stream));
  stream.resume();
}
