import type { AnswerHead } from './answer-head.js';
import type { Origin } from './origin.js';

/** Hears the body of an answer, then exactly one of `end` and `failed`. */
export interface BodySink {
  /** A piece; never empty. */
  data(chunk: Buffer): void;
  /** What there was has been told; the rest is still to come. */
  waiting(): void;
  end(trailers: readonly string[]): void;
  /** The connection's error, a BadAnswerError, or the reason of the call's signal. */
  failed(error: unknown): void;
}

/** Hears how one exchange goes. `failed` may come at any time, also first. */
export interface AnswerListener extends BodySink {
  /** An interim answer (1xx), before the answer itself. Absent = nobody wants to hear of them. */
  interim?(head: AnswerHead): void;
  head(head: AnswerHead, exchange: Exchange): void;
}

/** What sends a body that is not there as a whole. */
export interface UploadSource {
  /** The connection stands. */
  ready(): void;
  /** More may be written. */
  drained(): void;
  /** Nobody wants the rest. Also called after the whole body was sent. */
  over(): void;
}

/** Where such a body goes. */
export interface Upload {
  /** The connection stands. */
  readonly connected: boolean;
  /** False: wait until `drained`. */
  write(chunk: Buffer): boolean;
  /** Trailer fields, flat; a body that is not sent in chunks has none. */
  end(trailers?: readonly string[]): void;
}

export type UpstreamBody =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | {
      readonly kind: 'stream';
      /** Sent in chunks; else the head has a Content-Length. */
      readonly chunked: boolean;
      readonly start: (upload: Upload) => UploadSource;
    };

export interface UpstreamCall {
  readonly origin: Origin;
  /** To a HEAD request there is an answer without a body. */
  readonly toHead: boolean;
  /** Request line and fields, the empty line included, in latin1. */
  readonly head: string;
  readonly body: UpstreamBody;
  /** Of this attempt alone: its listener is never taken off. */
  readonly signal: AbortSignal;
  /** Whether the request may be sent a second time when a kept connection turns out to be closed. */
  readonly repeatable: boolean;
}

/** What an exchange is carried by. */
export interface Carrier {
  readonly connected: boolean;
  readonly remoteAddress: string | undefined;
  pause(): void;
  resume(): void;
  writeChunk(chunk: Buffer): boolean;
  endUpload(trailers: readonly string[]): void;
  /** Ends it at once, together with the exchange. */
  drop(): void;
}

/** One request and its answer on one connection. Once it is over, nothing done to it has an effect. */
export class Exchange implements Upload {
  readonly call: UpstreamCall;
  readonly listener: AnswerListener;
  carrier: Carrier | undefined;
  /** Undefined for a body that was sent as a whole. */
  source: UploadSource | undefined;
  /** A part of the answer has come. */
  begun = false;
  /** All of the request was written. */
  sent = false;
  #over = false;

  constructor(call: UpstreamCall, listener: AnswerListener) {
    this.call = call;
    this.listener = listener;
    call.signal.addEventListener('abort', this, { once: true });
  }

  get over(): boolean {
    return this.#over;
  }

  /** Undefined = not known, or not any more. */
  get remoteAddress(): string | undefined {
    return this.carrier?.remoteAddress;
  }

  get connected(): boolean {
    return this.carrier?.connected === true;
  }

  /** Holds the answer back. A little more may still be told. */
  pause(): void {
    this.carrier?.pause();
  }

  resume(): void {
    this.carrier?.resume();
  }

  write(chunk: Buffer): boolean {
    return this.carrier?.writeChunk(chunk) ?? true;
  }

  end(trailers: readonly string[] = []): void {
    if (this.sent) return;
    this.sent = true;
    this.carrier?.endUpload(trailers);
  }

  /** Breaks it off without a word. */
  destroy(): void {
    if (this.#finish()) this.#drop();
  }

  /** Breaks it off; the listener hears why. */
  fail(error: unknown): void {
    if (!this.#finish()) return;
    this.#drop();
    this.listener.failed(error);
  }

  /** The answer is complete. */
  complete(trailers: readonly string[]): void {
    if (!this.#finish()) return;
    try {
      this.listener.end(trailers);
    } catch (error) {
      this.listener.failed(error);
    }
  }

  /** The signal's. */
  handleEvent(): void {
    this.fail(this.call.signal.reason);
  }

  #finish(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.source?.over();
    return true;
  }

  #drop(): void {
    const { carrier } = this;
    this.carrier = undefined;
    carrier?.drop();
  }
}
