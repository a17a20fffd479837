import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { CallerPace } from '../caller-pace.js';

/** The answer's way to the caller: headers once, messages, trailers once; or trailers only. */
export class CallerStream {
  readonly #stream: ServerHttp2Stream;
  readonly #pace: CallerPace;
  #begun = false;
  #ended = false;
  #onRoom: (() => void) | undefined;

  constructor(stream: ServerHttp2Stream, pace: CallerPace) {
    this.#stream = stream;
    this.#pace = pace;
    stream.on('drain', () => {
      pace.release('download');
      this.#onRoom?.();
    });
  }

  /** Something of the answer is on its way to the caller. */
  get begun(): boolean {
    return this.#begun;
  }

  /** All of the answer is. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Passes the answer's headers on. */
  begin(headers: OutgoingHttpHeaders): void {
    if (this.#begun || !this.#writable) return;
    this.#begun = true;
    this.#send(() => this.#stream.respond({ ':status': 200, ...headers }, { waitForTrailers: true }));
  }

  /** False = the caller takes no more for now; `onRoom` hears when it does. */
  write(chunk: Buffer, onRoom: () => void): boolean {
    if (!this.#writable) return true;
    if (this.#stream.write(chunk)) return true;
    this.#onRoom = onRoom;
    this.#pace.hold('download');
    return false;
  }

  /** Ends the answer: with trailers where it has begun, else with them alone. */
  end(trailers: OutgoingHttpHeaders): void {
    if (this.#ended || !this.#writable) return;
    this.#ended = true;
    const stream = this.#stream;
    if (!this.#begun) {
      this.#begun = true;
      const head = { ':status': 200, 'content-type': 'application/grpc', ...trailers };
      this.#send(() => stream.respond(head, { endStream: true }));
      endUnwanted(stream);
      return;
    }
    stream.once('wantTrailers', () => {
      if (!this.#writable) return;
      this.#send(() => stream.sendTrailers(trailers));
      endUnwanted(stream);
    });
    stream.end();
  }

  /** Nobody waits for an answer, or none can be given any more. */
  reset(code: number): void {
    this.#ended = true;
    if (!this.#stream.destroyed) this.#stream.close(code);
  }

  /** What an upstream says may be nothing that HTTP/2 can say again: its call breaks, and nothing else. */
  #send(write: () => void): void {
    try {
      write();
    } catch {
      this.reset(constants.NGHTTP2_INTERNAL_ERROR);
    }
  }

  get #writable(): boolean {
    return !this.#stream.destroyed && !this.#stream.closed;
  }
}

/** RFC 9113 §8.1: an answer before the end of its request asks for the rest not to be sent. Call it after the answer's end. */
export function endUnwanted(stream: ServerHttp2Stream): void {
  stream.resume();
  // What was written goes out first.
  setImmediate(() => {
    if (!stream.destroyed && !stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
  });
}
