import { isLoopbackAddress } from '../loopback-address.js';

/** Who is at the other end of a call. */
export interface GrpcPeer {
  /** IP address; undefined = not known, as on a unix socket. */
  readonly address: string | undefined;
  /** The certificate it proved, with TLS that asks for one. */
  readonly certificate: object | undefined;
}

/** The default of whom to believe: processes of this machine, by their address. */
export function isLoopback({ address }: GrpcPeer): boolean {
  return isLoopbackAddress(address);
}
