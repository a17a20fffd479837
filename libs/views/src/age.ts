const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** "2m14s", "3h20m", "12d": at most two units, as kubectl writes ages. A negative span, from clocks apart, is "0s". */
export function durationText(spanMs: number): string {
  const ms = Math.max(0, spanMs);
  if (ms < 2 * MINUTE) return `${Math.floor(ms / SECOND)}s`;
  if (ms < 10 * MINUTE) return two(ms, [MINUTE, 'm'], [SECOND, 's']);
  if (ms < 3 * HOUR) return `${Math.floor(ms / MINUTE)}m`;
  if (ms < 8 * HOUR) return two(ms, [HOUR, 'h'], [MINUTE, 'm']);
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)}h`;
  if (ms < 8 * DAY) return two(ms, [DAY, 'd'], [HOUR, 'h']);
  if (ms < 2 * YEAR) return `${Math.floor(ms / DAY)}d`;
  if (ms < 8 * YEAR) return two(ms, [YEAR, 'y'], [DAY, 'd']);
  return `${Math.floor(ms / YEAR)}y`;
}

/** Age of an RFC 3339 time at `nowUnixMs`; absent or unreadable = "<unknown>", kubectl's word. */
export function ageText(time: string | undefined, nowUnixMs: number): string {
  const ms = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(ms) ? '<unknown>' : durationText(nowUnixMs - ms);
}

/** Milliseconds as people write them: "0ms", "340ms", "1.9s", then as ages. */
export function shortSpanText(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)}ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)}s`;
  return durationText(ms);
}

type Unit = readonly [sizeMs: number, letter: string];

function two(ms: number, [large, largeLetter]: Unit, [small, smallLetter]: Unit): string {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)}${largeLetter}${rest === 0 ? '' : `${rest}${smallLetter}`}`;
}
