import { HEADER } from '@bulwark/agent';
import type { ServerResponse } from 'node:http';
import { AnswerWriter, pairs } from './answer-writer.js';
import type { Settle } from './call-upstream.js';
import { cutOff } from './cut-off.js';
import {
  FieldNames,
  headerOf,
  HOP_BY_HOP,
  passedOn,
  trailersPassedOn,
  withHeaders,
  type RawHeaders,
} from './hop-headers.js';
import type { AnswerHead } from './upstream/answer-head.js';
import type { BodySink, Exchange } from './upstream/exchange.js';

/** An upstream's answer: read whole, or its head with the rest still coming. */
export interface Answer {
  readonly status: number;
  /** End-to-end ones, as the caller may see them. */
  readonly headers: RawHeaders;
  /** Empty when it was not kept, or when there is a rest, which then is all of it. */
  readonly body: Buffer;
  /** The body, as far as it has come and what follows; undefined = `body` is everything. */
  readonly rest: HeldAnswer | undefined;
  readonly trailers: RawHeaders;
  /** Whole, small and allowed to be remembered. */
  readonly keep: boolean;
}

export const NO_BODY = Buffer.alloc(0);

/** Of a failing answer at most this is read; it may be thrown away in favour of a retry or a fallback. */
const FAILING_BODY_MAX_BYTES = 64 * 1024;

/** What an answer says of the layers below it: the word of its sender, so only a trusted one's counts. */
const ANSWER_MARKS = [HEADER.retry, HEADER.rejected, HEADER.degraded];
const DROPPED = new FieldNames([...HOP_BY_HOP, 'via']);
const DROPPED_UNBELIEVED = new FieldNames([...HOP_BY_HOP, 'via', ...ANSWER_MARKS]);

/** Whether an answer says anything of the layers below it. */
export function hasAnswerMarks({ headers }: AnswerHead): boolean {
  return ANSWER_MARKS.some((name) => headerOf(headers, name) !== undefined);
}

/** End-to-end headers of an answer with `via` added; those of a sender that is not believed have no marks. */
export function relayedHeaders({ headers }: AnswerHead, via: string, believed: boolean): string[] {
  return passedOn(headers, believed ? DROPPED : DROPPED_UNBELIEVED, via);
}

/**
 * Reads an answer that may not be the one the caller gets. Of a large one the beginning is held in memory and the rest
 * at its upstream, until it is decided.
 */
export class HeldAnswer implements BodySink {
  readonly #head: Pick<Answer, 'status' | 'headers'>;
  readonly #exchange: Exchange;
  readonly #settle: Settle<Answer>;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #large = false;
  #onward: { readonly writer: AnswerWriter; readonly response: ServerResponse } | undefined;
  /** How it ended while it was held. */
  #ended: { readonly trailers: RawHeaders } | 'broken' | undefined;

  constructor(head: Pick<Answer, 'status' | 'headers'>, exchange: Exchange, settle: Settle<Answer>) {
    this.#head = head;
    this.#exchange = exchange;
    this.#settle = settle;
  }

  data(chunk: Buffer): void {
    if (this.#onward !== undefined) return this.#onward.writer.data(chunk);
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#large || this.#bytes <= FAILING_BODY_MAX_BYTES) return;
    this.#large = true;
    this.#exchange.pause();
    const { status, headers } = this.#head;
    this.#settle.resolve({ status, headers, body: NO_BODY, rest: this, trailers: [], keep: false });
  }

  waiting(): void {
    this.#onward?.writer.waiting();
  }

  end(trailers: RawHeaders): void {
    if (this.#onward !== undefined) {
      this.#onward.writer.end(trailers, this.#head.headers);
    } else if (this.#large) {
      this.#ended = { trailers };
    } else {
      const { status, headers } = this.#head;
      const body = Buffer.concat(this.#chunks);
      this.#settle.resolve({ status, headers, body, rest: undefined, trailers, keep: false });
    }
  }

  failed(error: unknown): void {
    if (this.#onward !== undefined) cutOff(this.#onward.response);
    else if (this.#large) this.#ended = 'broken';
    else this.#settle.reject(error);
  }

  /** Passes all of it on. The response's head must have been written. */
  passOn(response: ServerResponse): void {
    if (response.destroyed) return this.discard();
    const writer = new AnswerWriter(response, this.#exchange);
    this.#onward = { writer, response };
    response.once('close', () => this.#exchange.destroy());
    for (const chunk of this.#chunks) writer.data(chunk);
    this.#chunks = [];
    if (this.#ended === 'broken') cutOff(response);
    else if (this.#ended !== undefined) writer.end(this.#ended.trailers, this.#head.headers);
    else {
      writer.waiting();
      if (!response.writableNeedDrain) this.#exchange.resume();
    }
  }

  /** An answer nobody gets must not keep its connection. */
  discard(): void {
    this.#chunks = [];
    this.#exchange.destroy();
  }
}

/** Writes an answer; `marks` replace headers of the same name. A caller that is gone is no error. */
export function writeAnswer(
  response: ServerResponse,
  answer: Answer,
  marks: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(answer.status, withHeaders(answer.headers, marks));
  if (answer.rest !== undefined) return answer.rest.passOn(response);
  if (answer.trailers.length > 0) response.addTrailers(pairs(trailersPassedOn(answer.trailers)));
  response.end(answer.body);
}

export function discard(answer: Answer | undefined): void {
  answer?.rest?.discard();
}
