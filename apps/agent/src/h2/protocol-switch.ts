import type { Server as HttpServer } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import type { GrpcListener } from './grpc-listener.js';

/** RFC 9113 §3.4: what every HTTP/2 client sends first. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export interface ProtocolSwitchOptions {
  readonly http1: HttpServer;
  readonly grpc: Pick<GrpcListener, 'server'>;
  /** How long a connection may take to show which protocol it speaks, milliseconds. Default 15,000. */
  readonly detectWithinMs?: number;
}

const DETECT_WITHIN_MS = 15_000;
const MAX_CONNECTIONS = 20_000;

/**
 * One listener for HTTP/1.1 and cleartext HTTP/2: looks at the first bytes of a connection, puts them back and hands the
 * connection to the server that speaks its protocol. Connections that say nothing, or half a preface, are closed in time.
 *
 * The servers behind it never listen themselves. `http1` is told that it does, since its timeouts begin with that.
 */
export class ProtocolSwitch {
  readonly server: Server;
  readonly #options: ProtocolSwitchOptions;
  /** Every connection, whoever has it. */
  readonly #sockets = new Set<Socket>();

  constructor(options: ProtocolSwitchOptions) {
    this.#options = options;
    this.server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
    this.server.maxConnections = MAX_CONNECTIONS;
    this.server.on('listening', () => options.http1.emit('listening'));
  }

  /**
   * Stops listening and cuts every connection: one whose protocol is not known yet, and one that its server has done with
   * and its other side has not (an HTTP/2 session that ended waits for ever for a client that does not).
   */
  close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    return closed;
  }

  #accept(socket: Socket): void {
    let start: Buffer = Buffer.alloc(0);
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    const end = (): void => void socket.destroy();
    const timer = setTimeout(end, this.#options.detectWithinMs ?? DETECT_WITHIN_MS);
    const leave = (): void => clearTimeout(timer);
    const look = (): void => {
      const bytes = socket.read() as Buffer | null;
      if (bytes === null) return;
      start = start.length === 0 ? bytes : Buffer.concat([start, bytes]);
      const protocol = protocolOf(start);
      if (protocol === undefined) return;
      leave();
      socket.removeListener('readable', look).removeListener('close', leave);
      socket.removeListener('end', end).removeListener('error', end);
      // Only now: bytes put back are announced as new ones.
      socket.unshift(start);
      this.#handOver(socket, protocol);
    };
    socket.on('readable', look).on('close', leave).on('end', end).on('error', end);
  }

  #handOver(socket: Socket, protocol: 'http1' | 'http2'): void {
    if (protocol === 'http1') {
      this.#options.http1.emit('connection', socket);
      return;
    }
    // An HTTP/2 connection has no half: it ends when its other side ends.
    socket.allowHalfOpen = false;
    this.#options.grpc.server.emit('connection', socket);
  }
}

/** Undefined = these bytes may still become a preface. */
export function protocolOf(start: Buffer): 'http1' | 'http2' | undefined {
  const length = Math.min(start.length, PREFACE.length);
  if (start.compare(PREFACE, 0, length, 0, length) !== 0) return 'http1';
  return length === PREFACE.length ? 'http2' : undefined;
}
