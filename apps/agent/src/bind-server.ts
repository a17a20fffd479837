import type { AddressInfo, Server } from 'node:net';
import type { HostPort } from './sidecar-options.js';

/** A server could not listen; the message says which port and which flag changes it. */
export class BindError extends Error {
  override readonly name = 'BindError';
}

type PlaceFlag = '--listen' | '--admin' | '--inbound';

/** Listens, and answers the port it got. */
export function bindServer(server: Server, place: HostPort, flag: PlaceFlag): Promise<number> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => reject(new BindError(explain(error, place, flag)));
    server.once('error', failed);
    server.listen(place.port, place.host, () => {
      server.removeListener('error', failed);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function explain(error: NodeJS.ErrnoException, { host, port }: HostPort, flag: string): string {
  const where = `${host}:${port}`;
  switch (error.code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is taken by another process; choose another with ${flag} HOST:PORT`;
    case 'EACCES':
      return `this user may not listen on ${where}; choose a port above 1023 with ${flag} HOST:PORT`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is no address of this machine; change it with ${flag} HOST:PORT`;
    default:
      return `cannot listen on ${where} (${flag}): ${error.message}`;
  }
}
