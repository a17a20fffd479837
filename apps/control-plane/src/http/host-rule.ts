import { isLoopback, type Address } from '../config/server-config.js';
import { ApiError } from '../errors/api-error.js';

/**
 * A page of the web can make a name of its own mean 127.0.0.1 and so speak, as the person at this machine, to a server
 * without credentials. Its requests carry that name: on loopback only this machine's own names are answered.
 *
 * @param host the Host header; undefined = HTTP/1.0 without one, which no browser sends
 * @param listen what the server listens on; beyond loopback any name is answered
 */
export function refusedHost(host: string | undefined, listen: Address): ApiError | undefined {
  if (!isLoopback(listen.host) || host === undefined) return undefined;
  const name = host
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
  if (isLoopback(name) || name === listen.host) return undefined;
  return new ApiError(
    'Forbidden',
    `the Host header ${JSON.stringify(host)} is no name of this machine's loopback address: use localhost or ${listen.host}`,
  );
}
