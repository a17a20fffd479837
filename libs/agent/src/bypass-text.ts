import { formatDuration, parseDuration } from '@bulwark/policy';

export const DEFAULT_BYPASS_MS = 10 * 60_000;
export const MAX_BYPASS_MS = 24 * 3_600_000;
const MAX_REASON = 500;

export type ReadBypass =
  /** `leftMs` is at most `MAX_BYPASS_MS`; 0 = its time has ended. */
  | { readonly kind: 'bypass'; readonly leftMs: number; readonly reason: string }
  | { readonly kind: 'unusable'; readonly problem: string };

/**
 * What a bypass file says: the first line is how long from its modification on, the rest why. Anything else is no bypass:
 * a file that was meant otherwise must not take the guards away. A modification time in the future counts from now.
 */
export function readBypassText(text: string, modifiedUnixMs: number, nowUnixMs: number): ReadBypass {
  const [first = '', ...rest] = text.split(/\r?\n/);
  const duration = first.trim();
  const parsed = duration === '' ? DEFAULT_BYPASS_MS : parseDuration(duration);
  if (typeof parsed !== 'number') {
    return unusable(`its first line ${JSON.stringify(duration.slice(0, 40))} is no duration such as "30m"`);
  }
  if (parsed <= 0 || parsed > MAX_BYPASS_MS) {
    return unusable(`${duration} is not more than 0 and at most ${formatDuration(MAX_BYPASS_MS)}`);
  }
  if (modifiedUnixMs - nowUnixMs > MAX_BYPASS_MS) {
    return unusable('it was modified more than a day in the future: correct the clock or the file');
  }
  const elapsedMs = Math.max(0, nowUnixMs - modifiedUnixMs);
  const reason = rest.join(' ').replace(/\s+/g, ' ').trim().slice(0, MAX_REASON);
  return { kind: 'bypass', leftMs: Math.max(0, parsed - elapsedMs), reason };
}

function unusable(problem: string): ReadBypass {
  return { kind: 'unusable', problem };
}
