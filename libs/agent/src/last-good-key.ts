import { createHash } from 'node:crypto';
import type { ReadHeader } from './headers.js';

/** A body larger than this is passed on and not remembered. */
export const LAST_GOOD_MAX_BYTES = 256 * 1024;

/** Never remembered for another caller: who asks is part of the key, always. */
const IDENTITY = ['authorization', 'cookie', 'proxy-authorization'];

/**
 * Names an answer for last-good: method, full URL, who asks, and the headers the policy varies by. Undefined = this
 * answer must not be remembered: only safe methods may be. Secrets are hashed, since keys live long.
 */
export function lastGoodKey(
  call: { readonly method: string; readonly url: string; readonly header: ReadHeader },
  varyBy: readonly string[],
): string | undefined {
  if (call.method !== 'GET' && call.method !== 'HEAD') return undefined;
  const varied = varyBy
    .filter((name) => name.startsWith('header:'))
    .map((name) => `${name}=${call.header(name.slice('header:'.length)) ?? ''}`);
  return JSON.stringify([call.method, call.url, identityOf(call.header), ...varied]);
}

/** Whether an answer may be kept: a full success that does not forbid it. */
export function mayBeKept(status: number, header: ReadHeader): boolean {
  const forbidden = /(^|,)\s*no-store\s*(,|$)/i.test(header('cache-control') ?? '');
  return status >= 200 && status < 300 && status !== 206 && !forbidden;
}

/** Who asks; "" = nobody is named. */
export function identityOf(header: ReadHeader): string {
  const identity = IDENTITY.map((name) => header(name) ?? '');
  return identity.every((value) => value === '') ? '' : digest(identity);
}

function digest(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}
