import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AnswerParser, type AnswerSink } from './answer-parser.js';
import type { AnswerHead } from './answer-head.js';
import type { Carrier, Exchange } from './exchange.js';
import type { Origin } from './origin.js';
import { fieldLine } from './request-head.js';

/** What a connection tells its pool. */
export interface ConnectionOwner {
  /** It may carry another exchange. */
  free(connection: Connection): void;
  /** It is gone. */
  closed(connection: Connection): void;
  /** A kept connection was closed before any answer: the exchange may begin anew on another. */
  stale(exchange: Exchange): void;
  /** A TLS session to go on with later. */
  session(session: Buffer): void;
}

/** Probes of an idle TCP connection begin after this. */
const PROBE_AFTER_MS = 1_000;

export function openSocket(origin: Origin, session: Buffer | undefined): Socket {
  const { secure, host, port } = origin;
  const options = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: PROBE_AFTER_MS };
  if (!secure) return connectTcp(options);
  return connectTls({
    ...options,
    ALPNProtocols: ['http/1.1'],
    // RFC 6066 §3: an address is no server name.
    ...(isIP(host) === 0 && { servername: host }),
    ...(session !== undefined && { session }),
  });
}

/** One connection to an upstream: one exchange at a time, no pipelining. */
export class Connection implements Carrier, AnswerSink {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #parser = new AnswerParser();
  #exchange: Exchange | undefined;
  #head: AnswerHead | undefined;
  #paused = false;
  #error: Error | undefined;
  #gone = false;
  connected = false;
  /** It has carried an exchange to its end. */
  reused = false;
  /** Since when it is idle, monotonic milliseconds; the pool's. */
  idleSinceMs = 0;
  /** How long its upstream says it keeps it when idle. */
  idleSeconds: number | undefined;

  constructor(socket: Socket, secure: boolean, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      this.connected = true;
      this.#exchange?.source?.ready();
    });
    if (secure) socket.on('session', (session: Buffer) => owner.session(session));
    socket.on('data', (piece: Buffer) => this.#heard(piece));
    socket.on('drain', () => this.#exchange?.source?.drained());
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => {
      this.#error = error;
    });
    socket.on('close', () => this.#closed());
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** Begins an exchange. Only while no other is under way. */
  carry(exchange: Exchange): void {
    const { call } = exchange;
    this.#exchange = exchange;
    this.#head = undefined;
    exchange.carrier = this;
    this.#parser.reset(call.toHead);
    if (call.body.kind === 'whole') {
      exchange.sent = true;
      this.#socket.write(withBody(call.head, call.body.bytes), 'latin1');
      return;
    }
    this.#socket.write(call.head, 'latin1');
    exchange.source = call.body.start(exchange);
    if (this.connected) exchange.source.ready();
  }

  pause(): void {
    this.#paused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#socket.resume();
  }

  writeChunk(chunk: Buffer): boolean {
    const socket = this.#socket;
    const { body } = this.#exchange?.call ?? {};
    if (body?.kind !== 'stream' || !body.chunked) return socket.write(chunk);
    if (chunk.length === 0) return true;
    socket.cork();
    socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
    socket.write(chunk);
    const more = socket.write('\r\n', 'latin1');
    socket.uncork();
    return more;
  }

  endUpload(trailers: readonly string[]): void {
    const { body } = this.#exchange?.call ?? {};
    if (body?.kind !== 'stream' || !body.chunked) return;
    let end = '0\r\n';
    for (let at = 0; at + 1 < trailers.length; at += 2)
      end += fieldLine(trailers[at] ?? '', trailers[at + 1] ?? '');
    this.#socket.write(`${end}\r\n`, 'latin1');
  }

  drop(): void {
    this.#exchange = undefined;
    this.#parser.stop();
    this.#leave();
    this.#socket.destroy();
  }

  /** Ends it; what it carries fails. */
  cut(): void {
    if (this.#exchange === undefined) this.drop();
    else this.#exchange.fail(brokeOff());
  }

  /** Whether it may carry an exchange, as far as is known here. */
  get usable(): boolean {
    return !this.#socket.destroyed;
  }

  interim(head: AnswerHead): void {
    this.#exchange?.listener.interim?.(head);
  }

  head(head: AnswerHead): void {
    this.#head = head;
    const exchange = this.#exchange;
    exchange?.listener.head(head, exchange);
  }

  data(chunk: Buffer): void {
    this.#exchange?.listener.data(chunk);
  }

  #heard(piece: Buffer): void {
    const exchange = this.#exchange;
    // Bytes that nobody asked for: whatever they are, the next answer would not be the next.
    if (exchange === undefined) return this.drop();
    exchange.begun = true;
    try {
      const progress = this.#parser.push(piece, this);
      if (exchange.over) return;
      if (progress === 'more') exchange.listener.waiting();
      else if (progress === 'done') this.#complete(exchange, true);
      else exchange.fail(progress);
    } catch (error) {
      // The listener's own fault; nobody else would end its exchange.
      exchange.fail(error);
    }
  }

  #complete(exchange: Exchange, mayKeep: boolean): void {
    this.#exchange = undefined;
    const keep =
      mayKeep &&
      exchange.sent &&
      this.#parser.leftover === 0 &&
      this.#head?.persistent === true &&
      !this.#gone;
    exchange.carrier = undefined;
    if (keep) {
      this.reused = true;
      this.idleSeconds = this.#head?.idleSeconds;
      this.resume();
      this.#owner.free(this);
    } else {
      this.drop();
    }
    exchange.complete(this.#parser.trailers);
  }

  /** The upstream sends no more. What we have to say would never be answered, so nothing is half-closed here. */
  #ended(): void {
    const exchange = this.#exchange;
    if (exchange === undefined) this.drop();
    else if (this.#parser.finish()) this.#complete(exchange, false);
    else this.#socket.destroy();
  }

  #closed(): void {
    this.#leave();
    const exchange = this.#exchange;
    this.#exchange = undefined;
    if (exchange === undefined) return;
    exchange.carrier = undefined;
    const closed = this.#error === undefined || isReset(this.#error);
    if (closed && this.reused && !exchange.begun && exchange.call.repeatable) {
      this.#owner.stale(exchange);
      return;
    }
    exchange.fail(this.#error ?? brokeOff());
  }

  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#owner.closed(this);
  }
}

function withBody(head: string, body: Buffer): string | Buffer {
  if (body.length === 0) return head;
  const all = Buffer.allocUnsafe(head.length + body.length);
  all.write(head, 'latin1');
  body.copy(all, head.length);
  return all;
}

function isReset(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
}

function brokeOff(): Error {
  return Object.assign(new Error('the upstream closed the connection before its answer was complete'), {
    code: 'ECONNRESET',
  });
}
