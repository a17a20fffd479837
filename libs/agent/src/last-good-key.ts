import { createHash } from 'node:crypto';
import { HEADER, type ReadHeader } from './headers.js';

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

/**
 * Whether an answer may be kept: a full success that does not forbid it, is not degraded itself, and has an end (a
 * stream of events would be waited for instead of passed on).
 */
export function mayBeKept(status: number, header: ReadHeader): boolean {
  if (status < 200 || status >= 300 || status === 206 || header(HEADER.degraded)) return false;
  if (/^\s*text\/event-stream\b/i.test(header('content-type') ?? '')) return false;
  return !/(^|,)\s*no-store\s*(,|$)/i.test(header('cache-control') ?? '');
}

/** Who asks; "" = nobody is named. */
export function identityOf(header: ReadHeader): string {
  const identity = IDENTITY.map((name) => header(name) ?? '');
  return identity.every((value) => value === '') ? '' : digest(identity);
}

function digest(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}
