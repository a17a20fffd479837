/** What the tests of the gRPC adapter share: a service of all four kinds on a real server. No test framework in here. */
import * as grpc from '@grpc/grpc-js';
import { connect, silentLogger, type Bulwark, type ConnectOptions } from '../index.js';

export interface Text {
  readonly text: string;
}

const serialize = (value: Text): Buffer => {
  if (value.text === 'unwritable') throw new Error('no such field');
  return Buffer.from(JSON.stringify(value));
};
const deserialize = (bytes: Buffer): Text => JSON.parse(bytes.toString()) as Text;

const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
  path: `/demo.Echo/${name}`,
  requestStream,
  responseStream,
  requestSerialize: serialize,
  requestDeserialize: deserialize,
  responseSerialize: serialize,
  responseDeserialize: deserialize,
});

export const echoService = {
  unary: method('Unary', false, false),
  popular: method('Popular', false, false),
  upload: method('Upload', true, false),
  watch: method('Watch', false, true),
  chat: method('Chat', true, true),
} satisfies grpc.ServiceDefinition;

export interface EchoHandlers {
  readonly unary?: grpc.handleUnaryCall<Text, Text>;
  readonly popular?: grpc.handleUnaryCall<Text, Text>;
  readonly upload?: grpc.handleClientStreamingCall<Text, Text>;
  readonly watch?: grpc.handleServerStreamingCall<Text, Text>;
  readonly chat?: grpc.handleBidiStreamingCall<Text, Text>;
}

export type EchoClient = grpc.Client & {
  unary(
    request: Text,
    metadata: grpc.Metadata,
    options: grpc.CallOptions,
    callback: grpc.requestCallback<Text>,
  ): grpc.ClientUnaryCall;
  upload(
    metadata: grpc.Metadata,
    options: grpc.CallOptions,
    callback: grpc.requestCallback<Text>,
  ): grpc.ClientWritableStream<Text>;
  watch(request: Text, metadata: grpc.Metadata, options: grpc.CallOptions): grpc.ClientReadableStream<Text>;
  chat(metadata: grpc.Metadata, options: grpc.CallOptions): grpc.ClientDuplexStream<Text, Text>;
};

const EchoClientClass = grpc.makeGenericClientConstructor(echoService, 'Echo');

const cleanups: (() => Promise<unknown> | void)[] = [];

export function atEnd(cleanup: () => Promise<unknown> | void): void {
  cleanups.push(cleanup);
}

/** The last one first. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

export interface EchoServer {
  readonly address: string;
  readonly server: grpc.Server;
  /** What its handlers were given, one entry a call that reached one. */
  readonly seen: grpc.Metadata[];
}

export async function echoServer(
  handlers: EchoHandlers,
  options: grpc.ServerOptions = {},
  address = '127.0.0.1:0',
): Promise<EchoServer> {
  const server = new grpc.Server(options);
  const seen: grpc.Metadata[] = [];
  const watched = Object.entries(handlers).map(([name, handler]) => [
    name,
    (call: { metadata: grpc.Metadata }, ...rest: unknown[]) => {
      seen.push(call.metadata);
      return (handler as (...given: unknown[]) => unknown)(call, ...rest);
    },
  ]);
  server.addService(echoService, Object.fromEntries(watched) as grpc.UntypedServiceImplementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  atEnd(() => server.forceShutdown());
  return { address: `127.0.0.1:${port}`, server, seen };
}

export function echoClient(
  address: string,
  interceptors: grpc.Interceptor[],
  options: Partial<grpc.ClientOptions> = {},
): EchoClient {
  const client = new EchoClientClass(address, grpc.credentials.createInsecure(), {
    interceptors,
    // Each test has its own connections, and tries again at once.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.initial_reconnect_backoff_ms': 100,
    ...options,
  }) as unknown as EchoClient;
  atEnd(() => client.close());
  return client;
}

export function policyDocument(spec: object, name = 'echo'): object {
  return {
    apiVersion: 'bulwark.dev/v1',
    kind: 'ResiliencePolicy',
    metadata: { name, namespace: 'shop' },
    spec: { target: { service: 'echo' }, ...spec },
  };
}

/** An agent whose policies are these documents, with no control plane. */
export async function agentWith(
  policies: readonly object[],
  more: Partial<ConnectOptions> = {},
): Promise<Bulwark> {
  const bulwark = await connect({
    namespace: 'shop',
    service: 'storefront',
    bootstrap: policies,
    logger: silentLogger,
    ...more,
  });
  atEnd(() => bulwark.close());
  return bulwark;
}

/** How a call ended, as its application heard it. */
export interface Heard {
  readonly code: grpc.status;
  readonly details: string;
  readonly trailers: grpc.Metadata;
  readonly headers: grpc.Metadata | undefined;
  /** Every message, in order. */
  readonly texts: readonly string[];
}

export interface Watched<C> {
  readonly call: C;
  /** Resolves with the status; every call has exactly one. */
  readonly ended: Promise<Heard>;
  /** How often the application heard a status so far. */
  statuses(): number;
  texts(): readonly string[];
}

interface Surface {
  on(event: 'metadata', listener: (headers: grpc.Metadata) => void): unknown;
  on(event: 'status', listener: (status: grpc.StatusObject) => void): unknown;
}

function watch<C extends Surface>(call: C, texts: string[]): Watched<C> {
  let statuses = 0;
  let headers: grpc.Metadata | undefined;
  call.on('metadata', (received) => (headers = received));
  const ended = new Promise<Heard>((resolve) => {
    call.on('status', ({ code, details, metadata }) => {
      statuses += 1;
      resolve({ code, details, trailers: metadata, headers, texts });
    });
  });
  return { call, ended, statuses: () => statuses, texts: () => texts };
}

export interface CallParts {
  readonly metadata?: grpc.Metadata;
  readonly options?: grpc.CallOptions;
}

export function unary(client: EchoClient, text = 'hello', parts: CallParts = {}) {
  const texts: string[] = [];
  const { metadata = new grpc.Metadata(), options = {} } = parts;
  const call = client.unary({ text }, metadata, options, (error, answer) => {
    if (error === null && answer !== undefined) texts.push(answer.text);
  });
  return watch(call, texts);
}

export function upload(client: EchoClient, parts: CallParts = {}) {
  const texts: string[] = [];
  const { metadata = new grpc.Metadata(), options = {} } = parts;
  const call = client.upload(metadata, options, (error, answer) => {
    if (error === null && answer !== undefined) texts.push(answer.text);
  });
  return watch(call, texts);
}

export function watchStream(client: EchoClient, text = 'hello', parts: CallParts = {}) {
  const { metadata = new grpc.Metadata(), options = {} } = parts;
  return reading(client.watch({ text }, metadata, options));
}

export function chat(client: EchoClient, parts: CallParts = {}) {
  const { metadata = new grpc.Metadata(), options = {} } = parts;
  return reading(client.chat(metadata, options));
}

function reading<C extends Surface & NodeJS.ReadableStream>(call: C): Watched<C> {
  const texts: string[] = [];
  call.on('data', (message: Text) => texts.push(message.text));
  // Told by the status too.
  call.on('error', () => undefined);
  return watch(call, texts);
}

export function metadataOf(entries: Record<string, string>): grpc.Metadata {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}

export function failWith(
  code: grpc.status,
  marks: Record<string, string> = {},
): Partial<grpc.StatusObject> & Error {
  return Object.assign(new Error('failed'), { code, details: 'failed', metadata: metadataOf(marks) });
}

/** What an agent holds at the moment for calls under way. */
export function held(bulwark: Bulwark): { inFlight: number; waiting: number } {
  const all = bulwark.state().policies.map(({ totals }) => totals);
  return {
    inFlight: all.reduce((sum, totals) => sum + (totals?.inFlight ?? 0), 0),
    waiting: all.reduce((sum, totals) => sum + (totals?.waiting ?? 0), 0),
  };
}

export const NOTHING_HELD = { inFlight: 0, waiting: 0 };

/** Repeats what it is told, each message its own answer where the answer streams. */
export const echoing: EchoHandlers = {
  unary: (call, callback) => callback(null, { text: `${call.request.text}!` }, metadataOf({ t: 'trailer' })),
  upload: (call, callback) => {
    const texts: string[] = [];
    call.on('data', ({ text }: Text) => texts.push(text));
    call.on('end', () => callback(null, { text: texts.join(',') }));
  },
  watch: (call) => {
    call.sendMetadata(metadataOf({ h: 'header' }));
    for (const text of ['a', 'b', 'c']) call.write({ text: call.request.text + text });
    call.end(metadataOf({ t: 'trailer' }));
  },
  chat: (call) => {
    call.on('data', ({ text }: Text) => call.write({ text: `${text}!` }));
    call.on('end', () => call.end());
  },
};

/** POST is named: every call of gRPC may be tried again. */
export const retrying = {
  timeout: { total: '5s' },
  retry: { maxAttempts: 3, methods: ['POST'], backoff: { base: '1ms', max: '2ms' } },
  bulkhead: { maxConcurrent: 10 },
};

/** A server, an agent with one policy for it, and a guarded client. */
export async function world(handlers: EchoHandlers, spec: object = retrying) {
  const server = await echoServer(handlers);
  const bulwark = await agentWith([policyDocument(spec)]);
  const client = echoClient(server.address, [bulwark.grpc({ service: 'echo' })]);
  return { server, bulwark, client };
}
