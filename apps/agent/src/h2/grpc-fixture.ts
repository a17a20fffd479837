/** What the tests of gRPC through the sidecar share: a plain grpc-js service of all four kinds, and its clients. */
import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  status as Status,
  type CallOptions,
  type ClientReadableStream,
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServerOptions,
  type ServiceError,
  type StatusObject,
} from '@grpc/grpc-js';
import { atEnd } from '../sidecar-fixture.js';

export { Metadata, Status, type ServiceError };

const bytes = (message: Buffer): Buffer => message;
const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
  path: `/demo.Echo/${name}`,
  requestStream,
  responseStream,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
});

/** Messages are bytes, as they are. */
export const ECHO = {
  unary: method('Unary', false, false),
  down: method('Down', false, true),
  up: method('Up', true, false),
  both: method('Both', true, true),
};

export interface EchoHandlers {
  readonly unary?: handleUnaryCall<Buffer, Buffer>;
  readonly down?: handleServerStreamingCall<Buffer, Buffer>;
  readonly up?: handleClientStreamingCall<Buffer, Buffer>;
  readonly both?: handleBidiStreamingCall<Buffer, Buffer>;
}

export interface EchoServer {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
}

/** A service whose kinds without a handler answer UNIMPLEMENTED. */
export async function echoServer(
  handlers: EchoHandlers,
  options: ServerOptions = {},
  port = 0,
): Promise<EchoServer> {
  const server = new Server(options);
  server.addService(ECHO, { ...handlers });
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, got) =>
      error === null ? resolve(got) : reject(error),
    );
  });
  atEnd(() => server.forceShutdown());
  return { url: `http://127.0.0.1:${bound}`, port: bound, server };
}

export interface UnaryReply {
  readonly code: Status;
  readonly details: string;
  readonly body: string;
  /** Of a failing call its trailers; grpc-js gives those of a good one too. */
  readonly trailers: Metadata;
  readonly headers: Metadata;
}

/** A client that dials a sidecar and names the service, as `grpc.default_authority` does. */
export class EchoClient extends Client {
  constructor(port: number, service = 'fraud-api', options: object = {}) {
    super(`127.0.0.1:${port}`, credentials.createInsecure(), {
      'grpc.default_authority': service,
      'grpc.use_local_subchannel_pool': 1,
      // Retries are the sidecar's here.
      'grpc.enable_retries': 0,
      'grpc.max_receive_message_length': -1,
      ...options,
    });
    atEnd(() => this.close());
  }

  unary(
    body: string | Buffer,
    call: { metadata?: Metadata; options?: CallOptions; abort?: AbortController } = {},
  ): Promise<UnaryReply> {
    return new Promise((resolve) => {
      let headers = new Metadata();
      let trailers: StatusObject | undefined;
      let done: { error: ServiceError | null; value: Buffer | undefined } | undefined;
      const settle = (): void => {
        if (trailers === undefined || done === undefined) return;
        const { code, details, metadata } = trailers;
        resolve({ code, details, trailers: metadata, headers, body: done.value?.toString() ?? '' });
      };
      const made = this.makeUnaryRequest(
        ECHO.unary.path,
        bytes,
        bytes,
        Buffer.from(body),
        call.metadata ?? new Metadata(),
        call.options ?? {},
        (error: ServiceError | null, value?: Buffer) => {
          done = { error, value };
          settle();
        },
      );
      made.on('metadata', (metadata) => (headers = metadata));
      made.on('status', (end) => {
        trailers = end;
        settle();
      });
      call.abort?.signal.addEventListener('abort', () => made.cancel());
    });
  }

  down(
    body: string | Buffer,
    metadata = new Metadata(),
    options: CallOptions = {},
  ): ClientReadableStream<Buffer> {
    return this.makeServerStreamRequest(ECHO.down.path, bytes, bytes, Buffer.from(body), metadata, options);
  }

  up(
    done: (error: ServiceError | null, value?: Buffer) => void,
    metadata = new Metadata(),
    options: CallOptions = {},
  ) {
    return this.makeClientStreamRequest(ECHO.up.path, bytes, bytes, metadata, options, done);
  }

  both(metadata = new Metadata(), options: CallOptions = {}) {
    return this.makeBidiStreamRequest(ECHO.both.path, bytes, bytes, metadata, options);
  }
}

export interface StreamEnd {
  readonly code: Status;
  readonly details: string;
  readonly trailers: Metadata;
  readonly messages: string[];
}

/** Reads a stream of answers to its end. */
export function readAll(call: {
  on(event: 'data', listener: (message: Buffer) => void): unknown;
  on(event: 'status', listener: (end: StatusObject) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
}): Promise<StreamEnd> {
  const messages: string[] = [];
  return new Promise((resolve) => {
    call.on('data', (message) => messages.push(message.toString()));
    call.on('error', () => undefined);
    call.on('status', ({ code, details, metadata }) =>
      resolve({ code, details, trailers: metadata, messages }),
    );
  });
}

/** An error a handler answers with. */
export function failure(code: Status, details = 'broken', marks: Record<string, string> = {}) {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(marks)) metadata.set(name, value);
  return { code, details, metadata };
}

export function metadataOf(marks: Record<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(marks)) metadata.set(name, value);
  return metadata;
}
