import { createHash } from 'node:crypto';
import type { BreakerKey } from '@bulwark/fleet';

/** One text per key: namespaces and policies hold no "/". */
export function keyId({ namespace, policy, key }: BreakerKey): string {
  return `${namespace}/${policy}/${key}`;
}

/** First 8 hex digits of the SHA-256 of the key's text. */
export function keyHash(key: BreakerKey): string {
  return createHash('sha256').update(keyId(key)).digest('hex').slice(0, 8);
}

/** `metadata.name` of a Breaker: "<policy>.<8 hex digits>". */
export function breakerName(key: BreakerKey): string {
  return `${key.policy}.${keyHash(key)}`;
}

/** The policy and hash in a Breaker's name; undefined for a name of another form. */
export function parseBreakerName(name: string): { policy: string; hash: string } | undefined {
  const [, policy, hash] = /^(.+)\.([0-9a-f]{8})$/.exec(name) ?? [];
  return policy === undefined || hash === undefined ? undefined : { policy, hash };
}

export const VERDICT_PREFIX = '/bulwark/verdicts/';

export function verdictKey(key: BreakerKey): string {
  return `${VERDICT_PREFIX}${key.namespace}/${key.policy}/${keyHash(key)}`;
}
