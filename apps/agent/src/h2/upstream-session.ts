import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { CallTarget } from '../call-target.js';

export type UpstreamPlace = Pick<CallTarget, 'host' | 'port' | 'secure'>;

const CONNECT_WITHIN_MS = 10_000;
/** A connection nothing is asked of is kept so long. */
const IDLE_MS = 60_000;
/** Names may mean other addresses meanwhile, and a balancer may want its share: new calls then go by a new connection. */
const MAX_AGE_MS = 10 * 60_000;
/** More at once on one connection would share its one window; another connection is opened instead. */
const MAX_STREAMS = 500;
/**
 * Many servers end a connection, with all its calls, on which many streams were reset (from 1,000 on, some from 500 on; it
 * could be an attack). Before that happens new calls go by a new connection.
 */
const MAX_RESETS = 400;
/** How long an answer to a ping may take, and how often one may be asked for: servers end connections that ping much. */
const PING_WITHIN_MS = 5_000;
const PING_EVERY_MS = 120_000;
const KEEP_ALIVE_AFTER_MS = 15_000;
/** Bounded by what streams may hold, not by this; the default refuses streams from 10 MB on. */
const SESSION_MEMORY_MB = 512;
const STREAM_WINDOW_BYTES = 256 * 1024;

/** One HTTP/2 connection to an upstream. */
export class UpstreamSession {
  readonly #session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #bornAtMs = performance.now();
  readonly #remoteAddress: string | undefined;
  #streams = 0;
  #resets = 0;
  #retired = false;
  #heardAtMs = performance.now();
  #pingedAtMs = -Infinity;
  #lost = false;

  private constructor(session: ClientHttp2Session, socket: Socket) {
    this.#session = session;
    this.#socket = socket;
    this.#remoteAddress = socket.remoteAddress;
    const lost = (): void => {
      this.#lost = true;
    };
    // Before the session hears of it, and ends its streams: each of them then knows why.
    socket.prependOnceListener('close', lost).prependOnceListener('error', lost);
    session.on('goaway', (code) => {
      this.#retired = true;
      if (code !== constants.NGHTTP2_NO_ERROR) lost();
    });
    session.setTimeout(IDLE_MS);
    session.on('timeout', () => {
      if (this.#streams === 0) this.retire();
    });
  }

  /** Resolves when the upstream has shown that it speaks HTTP/2. Rejects with an error of the connecting. */
  static open(place: UpstreamPlace): Promise<UpstreamSession> {
    return new Promise((resolve, reject) => {
      const socket = dial(place);
      const session = connect(originOf(place), {
        createConnection: () => socket,
        settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
        maxSessionMemory: SESSION_MEMORY_MB,
      });
      const fail = (error?: Error): void => {
        clearTimeout(timer);
        session.destroy();
        socket.destroy();
        reject(connectError(place, error));
      };
      const timer = setTimeout(fail, CONNECT_WITHIN_MS);
      socket.once('error', fail);
      session.on('error', fail);
      session.once('close', fail);
      session.once('remoteSettings', () => {
        clearTimeout(timer);
        session.removeListener('close', fail);
        resolve(new UpstreamSession(session, socket));
      });
    });
  }

  get remoteAddress(): string | undefined {
    return this.#remoteAddress;
  }

  /** It can take a call now. */
  get usable(): boolean {
    if (!this.alive) return false;
    if (performance.now() - this.#bornAtMs > MAX_AGE_MS) this.retire();
    return !this.#retired;
  }

  get alive(): boolean {
    return !this.#lost && !this.#session.destroyed && !this.#session.closed;
  }

  /** Calls that have a place. */
  get streams(): number {
    return this.#streams;
  }

  get full(): boolean {
    const { maxConcurrentStreams = MAX_STREAMS } = this.#session.remoteSettings;
    return this.#streams >= Math.min(MAX_STREAMS, maxConcurrentStreams);
  }

  /** The connection itself is gone: what became of its calls is unknown. */
  get lost(): boolean {
    return this.#lost;
  }

  onClose(listener: () => void): void {
    this.#session.once('close', listener);
  }

  /** A place for one call, kept until `leave`. */
  enter(): void {
    this.#streams += 1;
  }

  leave(): void {
    this.#streams -= 1;
  }

  /** Throws when the session has just ended, or the headers cannot be sent. */
  request(headers: OutgoingHttpHeaders, endStream: boolean): ClientHttp2Stream {
    return this.#session.request(headers, { endStream });
  }

  /** Ends a call that nobody waits for any more. */
  reset(stream: ClientHttp2Stream): void {
    if (stream.closed || stream.destroyed) return;
    stream.close(constants.NGHTTP2_CANCEL);
    this.#resets += 1;
    if (this.#resets >= MAX_RESETS) this.retire();
  }

  /** The upstream said something. */
  heard(): void {
    this.#heardAtMs = performance.now();
  }

  /**
   * A call that began at `sinceMs` ran out of time. When nothing was heard on the connection since, it may be half-dead:
   * it is asked, and ended when it does not answer, so that the next calls get another.
   */
  doubt(sinceMs: number): void {
    const nowMs = performance.now();
    if (!this.alive || this.#heardAtMs >= sinceMs || nowMs - this.#pingedAtMs < PING_EVERY_MS) return;
    this.#pingedAtMs = nowMs;
    const timer = setTimeout(() => this.destroy(), PING_WITHIN_MS);
    this.#session.ping((error) => {
      clearTimeout(timer);
      if (error === null) this.heard();
    });
    timer.unref();
  }

  /** Takes no new calls; closed when the last of them has ended. */
  retire(): void {
    this.#retired = true;
    if (!this.#session.closed) this.#session.close();
  }

  destroy(): void {
    this.#lost = true;
    this.#session.destroy();
    this.#socket.destroy();
  }
}

function dial({ host, port, secure }: UpstreamPlace): Socket | TLSSocket {
  const options = { host, port, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS, noDelay: true };
  if (!secure) return connectTcp(options);
  return connectTls({ ...options, ...(isIP(host) === 0 && { servername: host }), ALPNProtocols: ['h2'] });
}

function originOf({ host, port, secure }: UpstreamPlace): string {
  return `${secure ? 'https' : 'http'}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** Recognised by `judgeError` as a fault of connecting: the upstream has seen no call. */
function connectError({ host, port }: UpstreamPlace, cause: Error | undefined): Error {
  const code = cause !== undefined && 'code' in cause ? String(cause.code) : 'no HTTP/2 connection in time';
  return Object.assign(new Error(`no HTTP/2 connection to ${host}:${port}: ${code}`, { cause }), {
    code,
    syscall: 'connect',
  });
}
