import type { InterceptorOptions } from '@grpc/grpc-js';
import type { InterceptedCall } from './grpc-types.js';

/**
 * The method of one call. The transport takes path and deserialiser from the definition it made for this very call, and
 * not from a copy that is handed on; so answers are caught there, and another method is named there.
 */
export class CallMethod {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  /** The last answer as it came, once answers are caught. */
  lastBytes: Buffer | undefined;
  readonly #definition: InterceptorOptions['method_definition'];
  readonly #deserialize: (bytes: Buffer) => unknown;

  constructor(definition: InterceptorOptions['method_definition']) {
    this.path = definition.path;
    this.requestStream = definition.requestStream;
    this.responseStream = definition.responseStream;
    this.#definition = definition;
    this.#deserialize = definition.responseDeserialize;
  }

  /** A single request and a single answer. */
  get unary(): boolean {
    return !this.requestStream && !this.responseStream;
  }

  serialize(message: unknown): Buffer {
    return this.#definition.requestSerialize(message);
  }

  deserialize(bytes: Buffer): unknown {
    return this.#deserialize(bytes);
  }

  /**
   * Whether an application's stand-in can be an answer. What makes messages makes one of nothing at all, in Protocol Buffers:
   * that shows what kind of value they are. Where it cannot, any value that is one may be a message.
   */
  isAnswer(value: unknown): boolean {
    if (value === undefined || value === null || value instanceof Error) return false;
    let empty: unknown;
    try {
      empty = this.#deserialize(Buffer.alloc(0));
    } catch {
      return true;
    }
    return typeof value === typeof empty && Array.isArray(value) === Array.isArray(empty);
  }

  /** Infinity = it cannot be written. */
  readonly sizeOf = (message: unknown): number => {
    try {
      return this.serialize(message).byteLength;
    } catch {
      return Infinity;
    }
  };

  /** From here on answers are kept as bytes: an object that was handed out may have been changed. */
  catchAnswers(): void {
    this.#definition.responseDeserialize = (bytes: Buffer): unknown => {
      this.lastBytes = bytes;
      return this.#deserialize(bytes);
    };
  }

  /** Makes a call to another method of the same messages. */
  as(path: string, make: () => InterceptedCall): InterceptedCall {
    this.#definition.path = path;
    try {
      return make();
    } finally {
      this.#definition.path = this.path;
    }
  }
}
