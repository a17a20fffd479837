import type { MessageContext } from './grpc-types.js';

/** A stream's messages are kept for another attempt up to so many bytes as they were sent; beyond, there is none. */
export const KEPT_MAX_BYTES = 256 * 1024;
/** And up to so many messages, however small. */
export const KEPT_MAX_MESSAGES = 1_000;

interface Sent {
  readonly message: unknown;
  readonly flags: number | undefined;
  /** The application's, called once: it may write the next one. */
  callback: MessageContext['callback'];
}

/**
 * What the application has sent so far, in order. Attempts read it by index, each from the first message on. While
 * nobody can need a message again it is let go once it was written.
 */
export class SentMessages {
  halfClosed = false;
  /** From message `#first` on. */
  readonly #messages: Sent[] = [];
  #first = 0;
  #kept = true;
  readonly #measure: ((message: unknown) => number) | undefined;
  #bytes = 0;
  /** Every message before it was written by some attempt. */
  #written = 0;

  /**
   * `measure` tells the size of a message in bytes; Infinity = it cannot be written. It is asked while messages are kept.
   * Absent = there is a single one, and it is kept whatever its size.
   */
  constructor(measure?: (message: unknown) => number) {
    this.#measure = measure;
  }

  /** Everything sent so far can be sent again. */
  get whole(): boolean {
    return this.#first === 0;
  }

  add(message: unknown, context: MessageContext): void {
    this.#messages.push({ message, flags: context.flags, callback: context.callback });
    if (this.#measure === undefined || !this.#kept) return;
    this.#bytes += this.#measure(message);
    if (this.#bytes > KEPT_MAX_BYTES || this.#messages.length > KEPT_MAX_MESSAGES) this.letGo();
  }

  /** Undefined = the application has not sent so many. */
  at(index: number): { readonly message: unknown; readonly flags: number | undefined } | undefined {
    return this.#messages[index - this.#first];
  }

  /** The transport took it. */
  written(index: number): void {
    this.#written = Math.max(this.#written, index + 1);
    const sent = this.#messages[index - this.#first];
    if (!this.#kept) this.#drop();
    release(sent);
  }

  /** No attempt will begin anew. */
  letGo(): void {
    this.#kept = false;
    this.#drop();
  }

  /** The call is over: nobody waits for a place to write any more. */
  end(): void {
    this.#kept = false;
    const waiting = this.#messages.splice(0);
    this.#first += waiting.length;
    this.#written = this.#first;
    waiting.forEach(release);
  }

  #drop(): void {
    const count = this.#written - this.#first;
    if (count <= 0) return;
    this.#messages.splice(0, count);
    this.#first = this.#written;
  }
}

/** Once: the application may write its next message. */
function release(sent: Sent | undefined): void {
  const callback = sent?.callback;
  if (sent === undefined || callback === undefined) return;
  sent.callback = undefined;
  callback();
}
