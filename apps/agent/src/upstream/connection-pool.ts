import { Connection, openSocket, type ConnectionOwner } from './connection.js';
import type { Exchange } from './exchange.js';
import type { Origin } from './origin.js';

/**
 * Connections to one upstream at a time. Calls never queue for one: how many may run is the policies' business
 * (bulkheads), and a pool that queues by itself would hide from them. The bound is for this process's own sake.
 */
const MAX_CONNECTIONS = 10_000;
/** More idle ones are closed. */
const MAX_IDLE = 256;
/** Below what servers commonly keep an idle connection, so that a request rarely meets one just closed. */
const MAX_IDLE_MS = 4_000;
/** Off what an upstream says it keeps one: the request is on its way for a while. */
const IDLE_MARGIN_MS = 1_000;

/** The sidecar itself has too many connections: no fault of the upstream. */
export class TooManyConnectionsError extends Error {
  override readonly name = 'TooManyConnectionsError';
  readonly code = 'TOO_MANY_CONNECTIONS';
}

/** The connections to one origin, kept between calls. */
export class ConnectionPool implements ConnectionOwner {
  readonly #origin: Origin;
  readonly #nowMs: () => number;
  /** The one that became idle last is taken first, so that those not needed grow old. */
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  #session: Buffer | undefined;

  constructor(origin: Origin, nowMs: () => number) {
    this.#origin = origin;
    this.#nowMs = nowMs;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Throws TooManyConnectionsError. */
  carry(exchange: Exchange): void {
    begin(exchange, this.#takeIdle() ?? this.#open());
  }

  free(connection: Connection): void {
    const keptMs = idleMs(connection);
    if (keptMs <= 0 || this.#idle.length >= MAX_IDLE) return connection.drop();
    connection.idleSinceMs = this.#nowMs();
    this.#idle.push(connection);
  }

  closed(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  /** Once only, and not on another kept connection: when an upstream restarts, all of them are closed. */
  stale(exchange: Exchange): void {
    try {
      begin(exchange, this.#open());
    } catch (error) {
      exchange.fail(error);
    }
  }

  session(session: Buffer): void {
    this.#session = session;
  }

  /** Closes connections that have been idle for long. */
  sweep(): void {
    const nowMs = this.#nowMs();
    for (const connection of [...this.#idle]) {
      if (nowMs - connection.idleSinceMs >= idleMs(connection)) connection.drop();
    }
  }

  /** Closes all of them; what is under way fails. */
  close(): void {
    for (const connection of [...this.#all]) connection.cut();
  }

  #takeIdle(): Connection | undefined {
    const nowMs = this.#idle.length > 0 ? this.#nowMs() : 0;
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (nowMs - connection.idleSinceMs < idleMs(connection) && connection.usable) return connection;
      connection.drop();
    }
    return undefined;
  }

  #open(): Connection {
    if (this.#all.size >= MAX_CONNECTIONS) {
      throw new TooManyConnectionsError(`there are ${MAX_CONNECTIONS} connections to one upstream already`);
    }
    const { secure } = this.#origin;
    const connection = new Connection(openSocket(this.#origin, this.#session), secure, this);
    this.#all.add(connection);
    return connection;
  }
}

function begin(exchange: Exchange, connection: Connection): void {
  try {
    connection.carry(exchange);
  } catch (error) {
    connection.drop();
    throw error;
  }
}

function idleMs({ idleSeconds }: Connection): number {
  return idleSeconds === undefined
    ? MAX_IDLE_MS
    : Math.min(MAX_IDLE_MS, idleSeconds * 1_000 - IDLE_MARGIN_MS);
}
