import type { ServerResponse } from 'node:http';
import type { CallerPace } from './caller-pace.js';
import { headerOf, trailersPassedOn, type RawHeaders } from './hop-headers.js';
import type { Exchange } from './upstream/exchange.js';

/** A body up to this size is written together with its head; copying it costs less than a second write. */
const TOGETHER_MAX_BYTES = 16 * 1024;

/** Writes an answer's body to the caller at the caller's pace. */
export class AnswerWriter {
  readonly #response: ServerResponse;
  readonly #exchange: Exchange;
  readonly #pace: CallerPace | undefined;
  /** The last piece, for as long as it may be the last one of all. */
  #held: Buffer | undefined;
  #heedsDrain = false;

  /** The response's head must have been written. `pace` hears when the caller does not take what is there. */
  constructor(response: ServerResponse, exchange: Exchange, pace?: CallerPace) {
    this.#response = response;
    this.#exchange = exchange;
    this.#pace = pace;
  }

  data(chunk: Buffer): void {
    if (this.#held !== undefined) this.#write(this.#held);
    this.#held = chunk;
  }

  /** There is nothing more for now: the caller shall have what there is, its head at least. */
  waiting(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) this.#response.flushHeaders();
    else this.#write(held);
  }

  end(trailers: RawHeaders, headers: RawHeaders): void {
    // Trailers need the chunked coding; an answer with Content-Length has none.
    if (trailers.length > 0 && headerOf(headers, 'content-length') === undefined) {
      this.#response.addTrailers(pairs(trailersPassedOn(trailers)));
    }
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) this.#response.end();
    // As text it goes into one write with the head.
    else if (held.length <= TOGETHER_MAX_BYTES) this.#response.end(held.toString('latin1'), 'latin1');
    else this.#response.end(held);
  }

  #write(chunk: Buffer): void {
    if (this.#response.write(chunk)) return;
    if (!this.#heedsDrain) {
      this.#heedsDrain = true;
      this.#response.on('drain', () => {
        this.#pace?.release('download');
        this.#exchange.resume();
      });
    }
    this.#pace?.hold('download');
    this.#exchange.pause();
  }
}

export function pairs(raw: RawHeaders): [string, string][] {
  const found: [string, string][] = [];
  for (let index = 0; index + 1 < raw.length; index += 2)
    found.push([raw[index] ?? '', raw[index + 1] ?? '']);
  return found;
}
