import type { Dispatcher } from 'undici';
import { ANSWER_MARKS } from '../headers.js';
import { LAST_GOOD_MAX_BYTES } from '../last-good-key.js';

type Controller = Dispatcher.DispatchController;
type Headers = Readonly<Record<string, string | string[] | undefined>>;

export interface Head {
  readonly status: number;
  readonly headers: Headers;
  readonly statusMessage: string | undefined;
}

/** How one attempt was answered. */
export interface DispatchAnswer {
  readonly head: Head;
  /** The whole body, where it may be remembered. */
  readonly body: Buffer | undefined;
  /** Waits at its head to be passed on or dropped; undefined = it was passed on. */
  readonly waiting: DispatchAttempt | undefined;
}

/** Where an answer goes. None of these throws. */
export interface Receiver {
  readonly start: (head: Head, controller: Controller) => void;
  readonly informed: (head: Head) => void;
  readonly data: (chunk: Buffer) => void;
  readonly end: (controller: Controller, trailers: Headers) => void;
  readonly error: (error: Error) => void;
}

export interface AttemptParts {
  readonly signal: AbortSignal;
  readonly receiver: Receiver;
  /** The caller gets this answer whatever is decided: it is passed on as it comes. */
  readonly isFinal: (head: Head) => boolean;
  readonly mayBeKept: (head: Head) => boolean;
  /** Whether what the answer says of layers and levels counts. */
  readonly believed: boolean;
}

function withoutMarks(headers: Headers): Headers {
  const shown = { ...headers };
  for (const name of ANSWER_MARKS) delete shown[name];
  return shown;
}

/** What is read and thrown away to keep a connection; beyond it the connection is closed. */
const MAX_DROPPED_BYTES = 64 * 1024;

/** Hears one dispatched request. Each attempt has its own; whatever comes after its end is ignored. */
export class DispatchAttempt implements Dispatcher.DispatchHandler {
  readonly answered: Promise<DispatchAnswer>;
  readonly #parts: AttemptParts;
  #settle!: { resolve: (answer: DispatchAnswer) => void; reject: (error: unknown) => void };
  #mode: 'head' | 'waiting' | 'passing' | 'dropping' | 'over' = 'head';
  #controller: Controller | undefined;
  #head: Head | undefined;
  /** The body so far: of an answer that waits, or a copy to remember. */
  #chunks: Buffer[] | undefined;
  #bytes = 0;
  /** How an answer that waits has ended meanwhile: also paused connections end. */
  #ended: { readonly trailers: Headers } | { readonly error: Error } | undefined;

  constructor(parts: AttemptParts) {
    this.#parts = parts;
    this.answered = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    parts.signal.addEventListener('abort', this.#aborted, { once: true });
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#parts.signal.aborted) controller.abort(this.#parts.signal.reason as Error);
  }

  onResponseStart(controller: Controller, status: number, headers: Headers, statusMessage?: string): void {
    if (this.#mode !== 'head') return;
    const shown = this.#parts.believed ? headers : withoutMarks(headers);
    const head = { status, headers: shown, statusMessage };
    if (status < 200) return this.#parts.receiver.informed(head);
    this.#controller = controller;
    this.#head = head;
    if (this.#parts.isFinal(head)) {
      this.#mode = 'passing';
      this.#chunks = this.#parts.mayBeKept(head) ? [] : undefined;
      this.#parts.receiver.start(head, controller);
      return;
    }
    this.#mode = 'waiting';
    this.#chunks = [];
    controller.pause();
    this.#stopListening();
    this.#settle.resolve({ head, body: undefined, waiting: this });
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    switch (this.#mode) {
      case 'passing':
        this.#copy(chunk);
        return this.#parts.receiver.data(chunk);
      case 'waiting':
        return void this.#chunks?.push(chunk);
      case 'dropping':
        this.#bytes += chunk.length;
        if (this.#bytes > MAX_DROPPED_BYTES) controller.abort(new Error('an answer nobody reads'));
        return;
      case 'head':
      case 'over':
    }
  }

  onResponseEnd(controller: Controller, trailers: Headers): void {
    if (this.#mode === 'waiting') this.#ended = { trailers };
    if (this.#mode !== 'passing' || this.#head === undefined) return;
    this.#mode = 'over';
    this.#stopListening();
    this.#parts.receiver.end(controller, trailers);
    const body = this.#chunks && Buffer.concat(this.#chunks);
    this.#settle.resolve({ head: this.#head, body, waiting: undefined });
  }

  onResponseError(_controller: Controller, error: Error): void {
    const { receiver, signal } = this.#parts;
    if (this.#mode === 'waiting') this.#ended = { error };
    if (this.#mode === 'passing') receiver.error(error);
    if (this.#mode !== 'passing' && this.#mode !== 'head') return;
    this.#mode = 'over';
    this.#stopListening();
    // What its own timeout or its caller ended was told already.
    this.#settle.reject(signal.aborted ? signal.reason : error);
  }

  /** The answer that waits is the caller's after all; `head` with the marks it gets. */
  passOn(head: Head): void {
    const controller = this.#controller;
    if (this.#mode !== 'waiting' || controller === undefined) return;
    const { receiver } = this.#parts;
    const [chunks, ended] = [this.#chunks ?? [], this.#ended];
    this.#mode = 'passing';
    this.#chunks = undefined;
    receiver.start(head, controller);
    for (const chunk of chunks) receiver.data(chunk);
    if (ended === undefined) return controller.resume();
    this.#mode = 'over';
    if ('error' in ended) receiver.error(ended.error);
    else receiver.end(controller, ended.trailers);
  }

  /** Nobody will read the answer that waits. */
  drop(): void {
    if (this.#mode !== 'waiting') return;
    this.#mode = 'dropping';
    this.#chunks = undefined;
    this.#controller?.resume();
  }

  readonly #aborted = (): void => {
    const reason = this.#parts.signal.reason as Error;
    this.#settle.reject(reason);
    this.#controller?.abort(reason);
    // One that never had a connection will not be told of its end.
    if (this.#mode === 'head') this.#mode = 'over';
  };

  #stopListening(): void {
    this.#parts.signal.removeEventListener('abort', this.#aborted);
  }

  #copy(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > LAST_GOOD_MAX_BYTES) this.#chunks = undefined;
    else this.#chunks?.push(Buffer.from(chunk));
  }
}
