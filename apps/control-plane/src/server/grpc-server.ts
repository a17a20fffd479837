import { MAX_MESSAGE_BYTES } from '@bulwark/protocol';
import { logVerbosity, Server, ServerCredentials, setLogVerbosity } from '@grpc/grpc-js';
import { formatAddress, type Address } from '../config/server-config.js';
import { listenError } from './listen-error.js';

/** A stream whose other side vanished without a word is noticed within 7.5 s. */
const KEEPALIVE_MS = 5_000;
const KEEPALIVE_TIMEOUT_MS = 2_500;
/** An agent sends Hello, answers and reports; a peer sends the same for many agents, one at a time. */
const MAX_RECEIVED_BYTES = 8 * 1024 * 1024;

export function createGrpcServer(maxStreams: number): Server {
  // What goes wrong is in this server's own log, in its own words; the library would write to stderr beside it.
  setLogVerbosity(logVerbosity.NONE);
  return new Server({
    'grpc.max_receive_message_length': MAX_RECEIVED_BYTES,
    'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
    'grpc.keepalive_time_ms': KEEPALIVE_MS,
    'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MS,
    'grpc.max_concurrent_streams': maxStreams,
  });
}

/** @returns the port, which matters when 0 was asked for */
export function listenGrpc(server: Server, address: Address): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(formatAddress(address), ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else reject(listenError(error, address, '--grpc'));
    });
  });
}
