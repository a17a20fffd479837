import { UpstreamSession, type UpstreamPlace } from './upstream-session.js';

/** Connections to one upstream that take calls; beyond, calls share the least busy one. */
const MAX_SESSIONS = 8;

/**
 * HTTP/2 connections to upstreams, shared by calls. Limits of calls are the policies' business (bulkheads): nothing waits
 * here for anything but a connection that is being made.
 */
export class UpstreamSessions {
  readonly #pools = new Map<string, Pool>();

  /** A connection with a place for one call, which is the caller's to leave. Rejects when none can be made. */
  async acquire(place: UpstreamPlace): Promise<UpstreamSession> {
    const key = `${place.secure ? 'https' : 'http'}://${place.host}:${place.port}`;
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      pool = new Pool(place, () => this.#pools.delete(key));
      this.#pools.set(key, pool);
    }
    return pool.enter() ?? (await pool.open());
  }

  /** Cuts what is still there. */
  close(): void {
    for (const pool of [...this.#pools.values()]) pool.close();
  }
}

class Pool {
  readonly #place: UpstreamPlace;
  readonly #onEmpty: () => void;
  readonly #sessions = new Set<UpstreamSession>();
  #opening: Promise<UpstreamSession> | undefined;
  #closed = false;

  constructor(place: UpstreamPlace, onEmpty: () => void) {
    this.#place = place;
    this.#onEmpty = onEmpty;
  }

  /** Takes a place on the least busy connection; undefined = there is none, or all are full and another may be made. */
  enter(): UpstreamSession | undefined {
    let best: UpstreamSession | undefined;
    let usable = 0;
    for (const session of this.#sessions) {
      if (!session.usable) continue;
      usable += 1;
      if (best === undefined || session.streams < best.streams) best = session;
    }
    if (best?.full === true && usable < MAX_SESSIONS) return undefined;
    best?.enter();
    return best;
  }

  /** Calls that come meanwhile wait for the same one. */
  async open(): Promise<UpstreamSession> {
    this.#opening ??= UpstreamSession.open(this.#place)
      .then((session) => this.#opened(session))
      .finally(() => {
        this.#opening = undefined;
        this.#forgetWhenEmpty();
      });
    const opened = await this.#opening;
    const session = this.enter();
    if (session !== undefined) return session;
    // Many may have waited, and the first of them have filled it.
    if (opened.full) return this.open();
    opened.enter();
    return opened;
  }

  close(): void {
    this.#closed = true;
    for (const session of this.#sessions) session.destroy();
  }

  #opened(session: UpstreamSession): UpstreamSession {
    if (this.#closed) session.destroy();
    this.#sessions.add(session);
    session.onClose(() => {
      this.#sessions.delete(session);
      this.#forgetWhenEmpty();
    });
    return session;
  }

  #forgetWhenEmpty(): void {
    if (this.#sessions.size === 0 && this.#opening === undefined) this.#onEmpty();
  }
}
