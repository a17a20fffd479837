// A namespace import: instrumentation finds no other.
import * as grpc from '@grpc/grpc-js';

/** A request or an answer of the little service. Real ones come from a .proto file. */
export interface Cart {
  readonly text: string;
}

const write = (cart: Cart): Buffer => Buffer.from(JSON.stringify(cart));
const read = (bytes: Buffer): Cart => JSON.parse(bytes.toString()) as Cart;
const method = (name: string, responseStream: boolean) => ({
  path: `/shop.Carts/${name}`,
  requestStream: false,
  responseStream,
  requestSerialize: write,
  requestDeserialize: read,
  responseSerialize: write,
  responseDeserialize: read,
});

const service = { get: method('Get', false), watch: method('Watch', true) } satisfies grpc.ServiceDefinition;

export type CartsClient = grpc.Client & {
  get(
    request: Cart,
    metadata: grpc.Metadata,
    options: grpc.CallOptions,
    callback: grpc.requestCallback<Cart>,
  ): grpc.ClientUnaryCall;
  watch(request: Cart): grpc.ClientReadableStream<Cart>;
};

const Client = grpc.makeGenericClientConstructor(service, 'Carts');

export function cartsClient(address: string, interceptors: grpc.Interceptor[]): CartsClient {
  return new Client(address, grpc.credentials.createInsecure(), { interceptors }) as unknown as CartsClient;
}

export interface CartsServer {
  readonly address: string;
  readonly server: grpc.Server;
}

export async function cartsServer(
  handlers: { get: grpc.handleUnaryCall<Cart, Cart>; watch: grpc.handleServerStreamingCall<Cart, Cart> },
  interceptors: grpc.ServerInterceptor[],
): Promise<CartsServer> {
  const server = new grpc.Server({ interceptors });
  server.addService(service, handlers);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { address: `127.0.0.1:${port}`, server };
}
