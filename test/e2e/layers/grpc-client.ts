import * as grpc from '@grpc/grpc-js';

export interface Ended {
  readonly code: grpc.status;
  readonly details: string;
  /** Trailers; undefined = the call went well. */
  readonly metadata: grpc.Metadata | undefined;
}

export interface RowClient extends Disposable {
  /** A unary call that never rejects. `forMs` = the caller's deadline from now; absent = none. */
  get(path: string, forMs?: number): Promise<Ended>;
}

/** A client of the services in `grpc-service.ts`. */
export function rowClient(address: string, options: grpc.ClientOptions): RowClient {
  const client = new grpc.Client(address, grpc.credentials.createInsecure(), options);
  const write = (value: string) => Buffer.from(value);
  const read = (bytes: Buffer) => bytes.toString();
  const get = (path: string, forMs?: number) =>
    new Promise<Ended>((resolve) => {
      const deadline = forMs === undefined ? {} : { deadline: Date.now() + forMs };
      const metadata = new grpc.Metadata();
      client.makeUnaryRequest('/layers.Row/Get', write, read, path, metadata, deadline, (error) =>
        resolve({
          code: error?.code ?? grpc.status.OK,
          details: error?.details ?? '',
          metadata: error?.metadata,
        }),
      );
    });
  return { get, [Symbol.dispose]: () => client.close() };
}
