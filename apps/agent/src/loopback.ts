import { isIPv4 } from 'node:net';

/** Whether only this machine reaches the address. A name other than "localhost" may be any address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

/** Whether a peer of this address is on this machine; an IPv6 socket writes IPv4 addresses as ::ffff:127.0.0.1. */
export function isLoopbackPeer(remoteAddress: string | undefined): boolean {
  return remoteAddress !== undefined && isLoopback(remoteAddress.replace(/^::ffff:/i, ''));
}
