/**
 * Ratios are percent texts: `10%`, `12.5%`, at most three decimals, no sign, no space. A bare number is refused,
 * since 0.2, 20 and "20" are each read in two ways somewhere.
 */
export const PERCENT_PATTERN = '^(?:0|[1-9][0-9]{0,2})(?:\\.[0-9]{1,3})?%$';
const GRAMMAR = new RegExp(PERCENT_PATTERN);

/** The ratio, "12.5%" → 0.125, rounded once; undefined when the text is not a percentage. Range is not checked here. */
export function parsePercent(text: unknown): number | undefined {
  if (typeof text !== 'string' || text.length > 8 || !GRAMMAR.test(text)) return undefined;
  // A decimal exponent keeps "33.3%" the double nearest to 0.333; dividing by 100 would round twice.
  return Number(`${text.slice(0, -1)}e-2`);
}

/** 0.125 → "12.5%", at most three decimals. Takes finite numbers ≥ 0. */
export function formatPercent(ratio: number): string {
  return `${Number((ratio * 100).toFixed(3))}%`;
}

/** What somebody meant by "12.5" or "20 %"; undefined for numbers without a sign of what they are. */
export function suggestPercent(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > 16) return undefined;
  const text = value.trim().replace(/\s*%$/, '%');
  return parsePercent(text) === undefined || text === value ? undefined : text;
}
