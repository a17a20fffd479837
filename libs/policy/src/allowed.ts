/** What a schema allows, in words. */
import { clip } from './problem.js';
import {
  percentRangeText,
  type DurationRange,
  type JsonSchema,
  type PercentRange,
} from './schema/builders.js';

/** "a whole number from 1 to 10", "one of Enforce, Shadow", "a duration from 1ms to 1h, such as 800ms or 2s". */
export function allowedText(schema: JsonSchema): string {
  if (schema.anyOf !== undefined) return schema.anyOf.map(allowedText).join(', or ');
  if (schema.const !== undefined) return String(schema.const);
  if (schema.enum !== undefined) {
    return schema.enum.length === 1 ? String(schema.enum[0]) : `one of ${schema.enum.join(', ')}`;
  }
  const duration = schema['x-bulwark-duration'] as DurationRange | undefined;
  if (duration !== undefined) {
    return `a duration from ${duration.min} to ${duration.max}: a whole number and one unit of ms, s, m, h, such as 800ms or 2s`;
  }
  const percent = schema['x-bulwark-percent'] as PercentRange | undefined;
  if (percent !== undefined) return `a percentage ${percentRangeText(percent)}, such as 10% or 12.5%`;
  return plainText(schema);
}

function plainText(schema: JsonSchema): string {
  switch (schema.type) {
    case 'integer':
      return `a whole number from ${num(schema, 'minimum')} to ${num(schema, 'maximum')}`;
    case 'number':
      return `a number from ${num(schema, 'minimum')} to ${num(schema, 'maximum')}`;
    case 'boolean':
      return 'true or false';
    case 'string': {
      const form = schema['x-bulwark-form'];
      return typeof form === 'string' ? form : `text of at most ${num(schema, 'maxLength')} characters`;
    }
    case 'array':
      return `a list of ${num(schema, 'minItems')} to ${num(schema, 'maxItems')} entries`;
    case 'object': {
      const names = Object.keys(schema.properties ?? {});
      return names.length === 0 ? 'a map' : clip(`a map with ${names.join(', ')}`, 240);
    }
    default:
      return '';
  }
}

function num(schema: JsonSchema, keyword: string): string {
  return String(schema[keyword]);
}
