import { AgentServiceService, type ConnectRequest } from '@bulwark/protocol';
import { status, type Server, type ServerDuplexStream } from '@grpc/grpc-js';
import type { Distribution, StreamPort } from './distribution.js';

type Call = ServerDuplexStream<ConnectRequest, Buffer>;

/** What goes out is bytes already: one message may be for thousands of agents. */
const SERVICE = {
  connect: { ...AgentServiceService.connect, responseSerialize: (bytes: Buffer): Buffer => bytes },
};

export function addAgentService(server: Server, distribution: Distribution): void {
  server.addService(SERVICE, { connect: (call: Call) => serve(call, distribution) });
}

function serve(call: Call, distribution: Distribution): void {
  let alive = true;
  const finish = (error: { code: status; details: string }): void => {
    if (!alive) return;
    over();
    call.emit('error', error);
  };
  const port: StreamPort = {
    get alive() {
      return alive;
    },
    write: (bytes) => !alive || call.write(bytes),
    close: (details) => finish({ code: status.UNAVAILABLE, details }),
    end: finish,
  };
  const handler = distribution.open(port);
  const over = (): void => {
    if (!alive) return;
    alive = false;
    handler.ended();
  };
  call.on('data', (request: ConnectRequest) => alive && handler.message(request));
  call.on('drain', () => alive && handler.drained());
  call.on('cancelled', over);
  call.on('close', over);
  call.on('error', over);
  call.on('end', () => {
    over();
    call.end();
  });
}
