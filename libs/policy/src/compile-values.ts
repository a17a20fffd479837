import { parseDuration } from './duration.js';
import { parsePercent } from './percent.js';

/** Milliseconds of a validated duration. */
export function msOf(duration: string): number {
  const ms = parseDuration(duration);
  if (ms === undefined) throw new TypeError(`not a validated duration: ${JSON.stringify(duration)}`);
  return ms;
}

/** 0..1 of a validated percentage. */
export function ratioOf(percent: string): number {
  const ratio = parsePercent(percent);
  if (ratio === undefined) throw new TypeError(`not a validated percentage: ${JSON.stringify(percent)}`);
  return ratio;
}

/** "5xx" → 500..599; numbers as they are. */
export function expandStatuses(statuses: readonly (number | string)[]): ReadonlySet<number> {
  const all = new Set<number>();
  for (const status of statuses) {
    if (typeof status === 'number') all.add(status);
    else for (let code = Number(status[0]) * 100, end = code + 100; code < end; code += 1) all.add(code);
  }
  return all;
}
