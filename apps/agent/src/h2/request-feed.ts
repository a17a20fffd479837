import type { ClientHttp2Stream, ServerHttp2Stream } from 'node:http2';
import type { CallerPace } from '../caller-pace.js';

/** Up to here a request is kept, so that it can be sent again. */
export const KEPT_MAX_BYTES = 64 * 1024;

/**
 * The messages of one call on their way to the upstream. What came so far is kept while it is small, so that another
 * attempt can begin with it; beyond that it can be sent once only. Nothing more is read than the upstream takes.
 *
 * While the upstream would take more and the caller sends nothing, the caller holds the call up: until the first answer.
 * Afterwards both may be waiting for each other, and nobody can tell.
 */
export class RequestFeed {
  readonly #from: ServerHttp2Stream;
  readonly #pace: CallerPace;
  #kept: Buffer[] = [];
  #bytes = 0;
  #whole = true;
  #ended: boolean;
  #answered = false;
  #to: ClientHttp2Stream | undefined;

  /** `ended`: the request has no body, its head was its end. */
  constructor(from: ServerHttp2Stream, pace: CallerPace, ended: boolean) {
    this.#from = from;
    this.#pace = pace;
    this.#ended = ended;
    from.on('data', (chunk: Buffer) => this.#arrived(chunk));
    from.on('end', () => {
      this.#ended = true;
      pace.release('upload');
      this.#to?.end();
    });
  }

  /** Everything the caller has sent so far is here still. */
  get whole(): boolean {
    return this.#whole;
  }

  /** The caller has sent everything. */
  get ended(): boolean {
    return this.#ended;
  }

  /** There is nothing to send: the head of the request is its end. */
  get empty(): boolean {
    return this.#ended && this.#bytes === 0;
  }

  /** Sends everything from the first byte on to this stream, and what comes as it comes. Takes a `whole` request. */
  attach(to: ClientHttp2Stream): void {
    this.#to = to;
    for (const chunk of this.#kept) to.write(chunk);
    this.#keepOrDrop();
    if (this.#ended) {
      if (!to.writableEnded) to.end();
      return;
    }
    to.on('drain', () => {
      if (this.#to === to) this.#wantMore();
    });
    if (to.writableNeedDrain) this.#from.pause();
    else this.#wantMore();
  }

  /** The attempt is over; another may follow. */
  detach(to: ClientHttp2Stream): void {
    if (this.#to !== to) return;
    this.#to = undefined;
    this.#pace.release('upload');
    // What nobody can send any more is read and dropped, or the caller could not finish.
    if (!this.#whole) this.#from.resume();
  }

  /** From now on nothing is sent a second time, and a silent caller is not what the call waits for. */
  answered(): void {
    this.#answered = true;
    this.#whole = false;
    this.#kept = [];
    this.#pace.release('upload');
  }

  /** The call is over; what else comes is not wanted. */
  discard(): void {
    this.#to = undefined;
    this.answered();
    this.#from.resume();
  }

  #arrived(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#whole) this.#kept.push(chunk);
    const to = this.#to;
    if (to === undefined) {
      // Between attempts: what would be too much to keep waits at the caller.
      if (this.#whole && this.#bytes > KEPT_MAX_BYTES) this.#from.pause();
      return;
    }
    this.#keepOrDrop();
    if (to.destroyed || to.writableEnded || to.write(chunk)) return;
    this.#pace.release('upload');
    this.#from.pause();
  }

  #keepOrDrop(): void {
    if (this.#bytes <= KEPT_MAX_BYTES) return;
    this.#whole = false;
    this.#kept = [];
  }

  #wantMore(): void {
    if (!this.#answered && !this.#ended) this.#pace.hold('upload');
    this.#from.resume();
  }
}
