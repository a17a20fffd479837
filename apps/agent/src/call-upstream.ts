import type { UpstreamClient } from './upstream-client.js';
import type { AnswerHead } from './upstream/answer-head.js';
import type { AnswerListener, BodySink, Exchange, UpstreamCall } from './upstream/exchange.js';

/** How the promise of a call to an upstream ends. */
export interface Settle<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

export interface UpstreamReader<T> {
  /** Decides, by its head, what becomes of the answer. The sink settles. */
  begin(head: AnswerHead, exchange: Exchange, settle: Settle<T>): BodySink;
  /** Hears interim answers (1xx). */
  interim?(head: AnswerHead): void;
}

/** Calls an upstream. Rejects with why there was no answer; after its head the sink settles, also for what fails then. */
export function callUpstream<T>(
  upstreams: UpstreamClient,
  call: UpstreamCall,
  reader: UpstreamReader<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    upstreams.open(call, new ReaderListener(reader, { resolve, reject }));
  });
}

class ReaderListener<T> implements AnswerListener {
  readonly #reader: UpstreamReader<T>;
  readonly #settle: Settle<T>;
  #body: BodySink | undefined;

  constructor(reader: UpstreamReader<T>, settle: Settle<T>) {
    this.#reader = reader;
    this.#settle = settle;
  }

  interim(head: AnswerHead): void {
    this.#reader.interim?.(head);
  }

  head(head: AnswerHead, exchange: Exchange): void {
    this.#body = this.#reader.begin(head, exchange, this.#settle);
  }

  data(chunk: Buffer): void {
    this.#body?.data(chunk);
  }

  waiting(): void {
    this.#body?.waiting();
  }

  end(trailers: readonly string[]): void {
    this.#body?.end(trailers);
  }

  failed(error: unknown): void {
    if (this.#body === undefined) this.#settle.reject(error);
    else this.#body.failed(error);
  }
}
