import { isIPv4 } from 'node:net';

/** Whether only this machine reaches the address. A name other than "localhost" may be any address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}
