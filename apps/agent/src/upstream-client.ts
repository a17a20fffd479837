import { ConnectionPool } from './upstream/connection-pool.js';
import { Exchange, type AnswerListener, type UpstreamCall } from './upstream/exchange.js';
import { originKey } from './upstream/origin.js';

const SWEEP_EVERY_MS = 1_000;

/** HTTP/1.1 to upstreams, over connections that are kept between calls. */
export class UpstreamClient {
  readonly #pools = new Map<string, ConnectionPool>();
  #sweeper: NodeJS.Timeout | undefined;
  #closed = false;

  /**
   * Sends a request; the listener hears the rest, at the earliest after this has returned. Throws
   * TooManyConnectionsError, and the reason of a signal that is aborted already.
   */
  open(call: UpstreamCall, listener: AnswerListener): Exchange {
    call.signal.throwIfAborted();
    if (this.#closed) throw new Error('the client is closed');
    const key = originKey(call.origin);
    let pool = this.#pools.get(key);
    if (pool === undefined) this.#pools.set(key, (pool = new ConnectionPool(call.origin, nowMs)));
    const exchange = new Exchange(call, listener);
    pool.carry(exchange);
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_EVERY_MS).unref();
    return exchange;
  }

  /** Ends every connection; what is under way fails. */
  close(): void {
    this.#closed = true;
    clearInterval(this.#sweeper);
    for (const pool of this.#pools.values()) pool.close();
  }

  #sweep(): void {
    for (const [key, pool] of this.#pools) {
      pool.sweep();
      if (pool.size === 0) this.#pools.delete(key);
    }
  }
}

function nowMs(): number {
  return performance.now();
}
