import { type Metadata, status as Status, type StatusObject } from '@grpc/grpc-js';
import type { Attempt, CallerHold } from '@bulwark/resilience';
import type { CallMethod } from './call-method.js';
import { type GrpcAnswer, GrpcEndError, hasMarks, withoutMarks } from './grpc-end.js';
import { plainStatus } from './grpc-outcome.js';
import type { InterceptedCall } from './grpc-types.js';
import { HoldMeter } from './hold-meter.js';
import type { SentMessages } from './sent-messages.js';

/** What an attempt needs of the call it is made for. */
export interface AttemptTask {
  readonly sent: SentMessages;
  /** Makes the call below. */
  readonly open: () => InterceptedCall;
  readonly method: CallMethod;
  readonly metadata: Metadata;
  /** Whether the marks of this dependency's answers count. */
  readonly believed: () => boolean;
  /** The engine ends the attempt at its timeout; false = nobody does. */
  readonly enforced: boolean;
  readonly nowMs: () => number;
  /** The application waits for a message of a stream. */
  readonly wantsRead: () => boolean;
  readonly onHeaders: (headers: Metadata) => void;
  readonly onMessage: (message: unknown) => void;
}

/** Timers of the transport count whole milliseconds of another clock: so much earlier may it say that time is up. */
const CLOCK_SLACK_MS = 5;

/** One try of a call: sends what the application has sent so far and goes on sending until one side ends it. */
export class GrpcAttempt {
  readonly #attempt: Attempt;
  readonly #task: AttemptTask;
  readonly #startedMs: number;
  readonly #hold: HoldMeter;
  #inner: InterceptedCall | undefined;
  #over = false;
  #next = 0;
  #writing = false;
  #halfClosed = false;
  #headers: Metadata | undefined;
  #answers = 0;
  #message: unknown = null;
  #settle!: { resolve: (answer: GrpcAnswer) => void; reject: (error: Error) => void };

  constructor(attempt: Attempt, task: AttemptTask) {
    this.#attempt = attempt;
    this.#task = task;
    this.#startedMs = task.nowMs();
    this.#hold = new HoldMeter(task.nowMs);
  }

  /** Rejects with a `GrpcEndError`, or with what the channel throws when it cannot even begin. Call it once. */
  run(): Promise<GrpcAnswer> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      const { signal } = this.#attempt;
      const task = this.#task;
      this.#inner = task.open();
      signal.addEventListener('abort', () => this.#abandon(), { once: true });
      this.#inner.start(task.metadata, {
        onReceiveMetadata: (headers) => this.#received(headers),
        onReceiveMessage: (message: unknown) => this.#answered(message),
        onReceiveStatus: (end) => this.#ended(end),
      });
      if (this.#streams && task.wantsRead()) this.#inner.startRead();
      this.sending();
    });
  }

  get inner(): InterceptedCall | undefined {
    return this.#inner;
  }

  hold(): CallerHold {
    return this.#hold.read();
  }

  /** The application asks for a message, or has sent one, or has ended its side. */
  reading(): void {
    if (this.#over) return;
    this.#inner?.startRead();
    this.#look();
  }

  sending(): void {
    this.#pump();
    this.#look();
  }

  get #streams(): boolean {
    return this.#task.method.responseStream;
  }

  /** One message at a time: the calls below hold a single one while they are being set up. */
  #pump(): void {
    const { sent } = this.#task;
    const inner = this.#inner;
    if (inner === undefined || this.#over || this.#writing) return;
    const next = sent.at(this.#next);
    if (next !== undefined) {
      const index = this.#next;
      this.#next += 1;
      this.#writing = true;
      const context = next.flags === undefined ? {} : { flags: next.flags };
      inner.sendMessageWithContext({ ...context, callback: () => this.#wrote(index) }, next.message);
    }
    // The end may follow a message that is still being written.
    if (sent.halfClosed && sent.at(this.#next) === undefined && !this.#halfClosed) {
      this.#halfClosed = true;
      inner.halfClose();
    }
  }

  #wrote(index: number): void {
    if (this.#over) return;
    this.#writing = false;
    this.#task.sent.written(index);
    this.sending();
  }

  #received(headers: Metadata): void {
    if (this.#over) return;
    const { requestStream } = this.#task.method;
    // A stream's application may wait for them before it goes on; a unary one has nothing to do meanwhile.
    if (requestStream || this.#streams) this.#task.onHeaders(headers);
    else this.#headers = headers;
  }

  #answered(message: unknown): void {
    if (this.#over) return;
    if (this.#streams) {
      this.#task.onMessage(message);
      this.#look();
      return;
    }
    if (message === null) return;
    this.#answers += 1;
    if (this.#answers > 1) {
      this.#fail(plainStatus(Status.UNIMPLEMENTED, 'Too many responses received'));
      return;
    }
    this.#message = message;
    // A second answer would be the server's mistake; it is found by reading on.
    if (this.#task.method.requestStream) this.#inner?.startRead();
  }

  #ended(told: StatusObject): void {
    if (this.#over) return;
    const end = hasMarks(told) && !this.#task.believed() ? withoutMarks(told) : told;
    if (end.code === Status.OK) {
      this.#close();
      const { resolve } = this.#settle;
      const task = this.#task;
      resolve({ status: end, headers: this.#headers, message: this.#message, bytes: task.method.lastBytes });
      return;
    }
    const timeUp = end.code === Status.DEADLINE_EXCEEDED && this.#timeIsUp();
    // The engine is about to say so itself, and it knows whose time it was.
    if (timeUp && this.#task.enforced) return;
    this.#close();
    const own = timeUp ? 'deadline' : this.#isUnwritable(end) ? 'request' : undefined;
    this.#settle.reject(new GrpcEndError(end, own));
  }

  /** The transport says so in words alone, and a server that relays its own such failure says the same. */
  #isUnwritable({ code, details }: StatusObject): boolean {
    if (code !== Status.INTERNAL || !details.startsWith('Request message serialization failure'))
      return false;
    return this.#task.method.sizeOf(this.#task.sent.at(this.#next - 1)?.message) === Infinity;
  }

  #timeIsUp(): boolean {
    return this.#task.nowMs() - this.#startedMs >= this.#attempt.timeoutMs - CLOCK_SLACK_MS;
  }

  /** The engine ended it: by its timeout or by its caller. */
  #abandon(): void {
    if (!this.#over) this.#fail(plainStatus(Status.CANCELLED, 'Ended by its guard'));
  }

  #fail(end: StatusObject): void {
    this.#close();
    this.#inner?.cancelWithStatus(Status.CANCELLED, end.details);
    this.#settle.reject(new GrpcEndError(end));
  }

  #close(): void {
    this.#over = true;
    this.#hold.set(false);
  }

  #look(): void {
    if (this.#over) return;
    const { requestStream } = this.#task.method;
    const { sent, wantsRead } = this.#task;
    // In both directions at once nobody can tell who waits for whom, but by what is not taken.
    const holding = this.#streams ? !wantsRead() : requestStream && !sent.halfClosed && !this.#writing;
    this.#hold.set(holding);
  }
}
