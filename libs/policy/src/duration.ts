/**
 * Durations are written as one positive whole number and one unit: `800ms`, `2s`, `5m`, `1h`. No sign, no space, no
 * fraction, no leading zero, no compound (`1h30m`), no other unit: there is one way to read each, and it is kept as
 * it was typed. Zero is not a duration: leave the field out.
 */
const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
type Unit = keyof typeof UNITS;

/** The grammar as a regular expression, for schemas and other tools. */
export const DURATION_PATTERN = '^[1-9][0-9]{0,9}(?:ms|s|m|h)$';
const GRAMMAR = /^([1-9][0-9]{0,9})(ms|s|m|h)$/;

/** Milliseconds, a positive integer; undefined when the text is not a duration. Range is not checked here. */
export function parseDuration(text: unknown): number | undefined {
  if (typeof text !== 'string' || text.length > 12) return undefined;
  const match = GRAMMAR.exec(text);
  if (match === null) return undefined;
  return Number(match[1]) * UNITS[match[2] as Unit];
}

/**
 * The shortest exact text: 1500 → "1500ms", 2000 → "2s", 5400000 → "90m". For messages and for values the program
 * makes; what a person typed is kept as typed. Takes finite numbers ≥ 0; 0 gives "0ms", which only messages use.
 */
export function formatDuration(ms: number): string {
  const whole = Math.round(ms);
  for (const unit of ['h', 'm', 's'] as const) {
    if (whole > 0 && whole % UNITS[unit] === 0) return `${whole / UNITS[unit]}${unit}`;
  }
  return `${whole}ms`;
}

const LOOSE_PART =
  /([0-9]+(?:\.[0-9]{1,6})?)\s*(milliseconds?|millis|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)/gy;

/**
 * What somebody who wrote `1.5s`, `1h30m`, ` 5S` or `1d` meant, in our grammar; undefined when it cannot be told (no
 * unit, a sign, a fraction of a millisecond).
 */
export function suggestDuration(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > 40) return undefined;
  const text = value.trim().toLowerCase();
  let ms = 0;
  LOOSE_PART.lastIndex = 0;
  let end = 0;
  for (let part = LOOSE_PART.exec(text); part !== null; part = LOOSE_PART.exec(text)) {
    ms += Number(part[1]) * looseUnitMs(part[2] ?? '');
    end = LOOSE_PART.lastIndex;
    while (text[end] === ' ') end += 1;
    LOOSE_PART.lastIndex = end;
  }
  const exact = Math.round(ms);
  if (end !== text.length || exact < 1 || Math.abs(exact - ms) > 1e-6 || exact > 1e12) return undefined;
  return formatDuration(exact);
}

function looseUnitMs(unit: string): number {
  if (unit.startsWith('ms') || unit.startsWith('mil')) return UNITS.ms;
  if (unit.startsWith('m')) return UNITS.m;
  if (unit.startsWith('s')) return UNITS.s;
  if (unit.startsWith('h')) return UNITS.h;
  return 24 * UNITS.h;
}
