// A gRPC service: HOW NAME PORT [NEXT NEXT_ADDRESS]. HOW is "plain": it knows nothing of Bulwark, passes metadata `traceparent`
// on, and NEXT_ADDRESS is a proxy; or the address of a control plane: then the SDK is inside. Without NEXT it is the leaf:
// "/dead" fails, the rest is well. The first line on stdout is where it listens, then one line of JSON a call.
import { connect } from '@bulwark/agent';
import * as grpc from '@grpc/grpc-js';
import { setTimeout as sleep } from 'node:timers/promises';

const [, , how = '', name = '', port = '0', next, nextAddress = ''] = process.argv;

const text = {
  requestSerialize: (value: string) => Buffer.from(value),
  requestDeserialize: (bytes: Buffer) => bytes.toString(),
  responseSerialize: (value: string) => Buffer.from(value),
  responseDeserialize: (bytes: Buffer) => bytes.toString(),
};
const row = {
  Get: { path: '/layers.Row/Get', requestStream: false, responseStream: false, ...text },
} satisfies grpc.ServiceDefinition;

const bulwark =
  how === 'plain' ? undefined : await connect({ namespace: 'shop', service: name, controlPlane: how });

const below =
  next === undefined
    ? undefined
    : new grpc.Client(nextAddress, grpc.credentials.createInsecure(), {
        // A proxy is told by the authority who is meant.
        ...(bulwark === undefined && { 'grpc.default_authority': next }),
        ...(bulwark !== undefined && { interceptors: [bulwark.grpc({ service: next })] }),
      });

async function answer(
  call: grpc.ServerUnaryCall<string, string>,
  done: grpc.sendUnaryData<string>,
): Promise<void> {
  const path = call.request;
  const asked = new URL(path, 'http://service').searchParams;
  if (asked.getAll('pause').includes(name)) await sleep(150);
  if (below === undefined) {
    if (path.startsWith('/dead')) done({ code: grpc.status.UNAVAILABLE, details: 'dead' });
    else done(null, 'leaf');
    return;
  }
  const metadata = new grpc.Metadata();
  const [trace] = call.metadata.get('traceparent');
  if (trace !== undefined) metadata.set('traceparent', trace);
  const { Get } = row;
  below.makeUnaryRequest(
    Get.path,
    Get.requestSerialize,
    Get.responseDeserialize,
    path,
    metadata,
    (error, value) => {
      if (error === null) done(null, value);
      else done({ code: error.code, details: error.details });
      console.log(JSON.stringify({ service: name, path: `ended ${path}` }));
    },
  );
}

const server = new grpc.Server({ interceptors: bulwark === undefined ? [] : [bulwark.grpcServer()] });
server.addService(row, {
  Get: (call: grpc.ServerUnaryCall<string, string>, done: grpc.sendUnaryData<string>) => {
    const header = (of: string) => call.metadata.get(of)[0] ?? null;
    const deadline = call.getDeadline();
    const leftMs = Number(deadline) - Date.now();
    const line = {
      service: name,
      path: call.request,
      attempt: header('bulwark-attempt'),
      deadlineMs: Number.isFinite(leftMs) ? String(leftMs) : null,
      traceparent: header('traceparent'),
    };
    console.log(JSON.stringify(line));
    void answer(call, done);
  },
});
server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (error, bound) => {
  if (error !== null) throw error;
  console.log(`listening on 127.0.0.1:${bound}`);
});
