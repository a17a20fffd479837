import type { ServerResponse } from 'node:http';
import { NO_BODY, type Answer } from './answer.js';
import { AnswerWriter } from './answer-writer.js';
import type { CallerPace } from './caller-pace.js';
import type { Settle } from './call-upstream.js';
import { cutOff } from './cut-off.js';
import type { RawHeaders } from './hop-headers.js';
import type { BodySink, Exchange } from './upstream/exchange.js';

export interface StreamOptions {
  readonly response: ServerResponse;
  readonly exchange: Exchange;
  readonly status: number;
  /** As the caller gets them. */
  readonly headers: RawHeaders;
  /** Keep a copy of a body up to this many bytes; 0 = none. */
  readonly keepBytes: number;
  /** Hears when the caller does not take what is there. */
  readonly pace: CallerPace;
  readonly settle: Settle<Answer>;
}

/**
 * Passes an answer on as it comes, and resolves when all of it has been passed on: until then the attempt is under
 * way, its bulkhead slot is held and its timeout runs. Rejects when the upstream breaks off; the caller's connection is
 * then cut, since a half answer must not look like a whole one.
 */
export class StreamedAnswer implements BodySink {
  readonly #options: StreamOptions;
  readonly #writer: AnswerWriter;
  #copy: Buffer[] | undefined;
  #bytes = 0;

  constructor(options: StreamOptions) {
    const { response, exchange, pace, status, headers, keepBytes } = options;
    this.#options = options;
    response.writeHead(status, headers as string[]);
    this.#writer = new AnswerWriter(response, exchange, pace);
    this.#copy = keepBytes > 0 ? [] : undefined;
  }

  data(chunk: Buffer): void {
    if (this.#copy !== undefined) {
      this.#bytes += chunk.length;
      if (this.#bytes > this.#options.keepBytes) this.#copy = undefined;
      else this.#copy.push(chunk);
    }
    this.#writer.data(chunk);
  }

  waiting(): void {
    this.#writer.waiting();
  }

  end(trailers: RawHeaders): void {
    const { status, headers, settle } = this.#options;
    this.#writer.end(trailers, headers);
    const copy = this.#copy;
    const body = copy === undefined ? NO_BODY : Buffer.concat(copy);
    settle.resolve({ status, headers, body, rest: undefined, trailers, keep: copy !== undefined });
  }

  failed(error: unknown): void {
    cutOff(this.#options.response);
    this.#options.settle.reject(error);
  }
}
