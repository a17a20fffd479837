/** What the schema says of single values and of sizes. */
import { parseDuration } from './duration.js';
import { parsePercent } from './percent.js';
import { valueText } from './problem.js';
import type { DurationRange, JsonSchema, PercentRange } from './schema/builders.js';

/** Why a text, number or boolean of the right type is refused; undefined = it is not. */
export function formatOf(schema: JsonSchema, value: unknown): string | undefined {
  if (typeof value === 'string') return textProblem(schema, value);
  if (typeof value !== 'number') return undefined;
  const { minimum = -Infinity, maximum = Infinity } = schema;
  return value < minimum || value > maximum ? `${value} is out of range` : undefined;
}

function textProblem(schema: JsonSchema, text: string): string | undefined {
  if (schema.enum !== undefined) return schema.enum.includes(text) ? undefined : notAllowed(text);
  const duration = schema['x-bulwark-duration'];
  if (duration !== undefined) return durationProblem(duration, text);
  const percent = schema['x-bulwark-percent'];
  if (percent !== undefined) return percentProblem(percent, text);
  const { minLength = 0, maxLength = Infinity, pattern } = schema;
  if (minLength > 0 && text.length === 0) return 'is empty';
  const length = text.length > maxLength || text.length < minLength ? characters(text) : text.length;
  if (length > maxLength) return `has ${length} characters, more than ${maxLength}`;
  if (length < minLength) return `has ${length} characters, fewer than ${minLength}`;
  return pattern === undefined || regular(pattern).test(text) ? undefined : notAllowed(text);
}

function notAllowed(text: string): string {
  return `${valueText(text)} is not allowed`;
}

function durationProblem(range: DurationRange, text: string): string | undefined {
  const ms = parseDuration(text);
  if (ms === undefined)
    return `${valueText(text)} ${/^[0-9]+$/.test(text) ? 'has no unit' : 'is not a duration'}`;
  const fits = ms >= (parseDuration(range.min) ?? 0) && ms <= (parseDuration(range.max) ?? 0);
  return fits ? undefined : `${valueText(text)} is out of range`;
}

function percentProblem(range: PercentRange, text: string): string | undefined {
  const ratio = parsePercent(text);
  if (ratio === undefined) {
    return `${valueText(text)} ${/^[0-9.]+$/.test(text) ? 'has no % sign' : 'is not a percentage'}`;
  }
  const low = range.min / 100;
  const high = range.max / 100;
  const fits =
    (range.above === true ? ratio > low : ratio >= low) &&
    (range.below === true ? ratio < high : ratio <= high);
  return fits ? undefined : `${valueText(text)} is out of range`;
}

/** Why a map or list has the wrong number of entries; undefined = it has not. */
export function sizeProblem(schema: JsonSchema, size: number): string | undefined {
  const least = schema.minItems ?? schema.minProperties ?? 0;
  const most = schema.maxItems ?? schema.maxProperties ?? Infinity;
  if (size < least) return size === 0 ? 'has no entry' : `has ${size} entries, fewer than ${least}`;
  return size > most ? `has ${size} entries, more than ${most}` : undefined;
}

/** Code points, as JSON Schema counts. */
function characters(text: string): number {
  return Array.from(text).length;
}

const compiled = new Map<string, RegExp>();

/** The patterns are the schema's own, so there are few. */
function regular(pattern: string): RegExp {
  let expression = compiled.get(pattern);
  if (expression === undefined) {
    expression = new RegExp(pattern, 'u');
    compiled.set(pattern, expression);
  }
  return expression;
}
