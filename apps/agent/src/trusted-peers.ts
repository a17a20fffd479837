import { BlockList, isIP } from 'node:net';

export const LOOPBACK_PEERS = '127.0.0.0/8,::1/128';

/** The peers whose marks are believed, by address. */
export class TrustedPeers {
  /** As it was given. */
  readonly text: string;
  readonly #list: BlockList;

  constructor(text: string, list: BlockList) {
    this.text = text;
    this.#list = list;
  }

  /** An address that is not known (its connection is gone) is not trusted. */
  trusts(address: string | undefined): boolean {
    if (address === undefined) return false;
    const family = isIP(address);
    // An IPv4 address seen through an IPv6 socket (::ffff:10.0.0.1) is found among the IPv4 ones too.
    return family !== 0 && this.#list.check(address, family === 4 ? 'ipv4' : 'ipv6');
  }
}

/** From "CIDR[,CIDR…]"; a lone address is that one; "none" = nobody. Adds to `problems` what cannot be read. */
export function parseTrustedPeers(text: string, problems: string[]): TrustedPeers {
  const list = new BlockList();
  const parts = text.split(',').map((part) => part.trim());
  if (text.trim() !== 'none') {
    for (const part of parts) {
      if (!addTo(list, part)) {
        problems.push(
          `--trusted-peers "${part}" must be an address or a CIDR such as 10.0.0.0/8 or fd00::/8; or "none" alone`,
        );
      }
    }
  }
  return new TrustedPeers(text, list);
}

function addTo(list: BlockList, part: string): boolean {
  const [address = '', length, ...rest] = part.split('/');
  const family = isIP(address);
  // A zone (fe80::1%eth0) names an interface, not a network.
  if (family === 0 || address.includes('%') || rest.length > 0) return false;
  const bits = family === 4 ? 32 : 128;
  if (length !== undefined && (!/^\d{1,3}$/.test(length) || Number(length) > bits)) return false;
  list.addSubnet(address, length === undefined ? bits : Number(length), family === 4 ? 'ipv4' : 'ipv6');
  return true;
}
