/** What a schema allows, in words. */
import { clip } from './problem.js';
import { percentRangeText, type JsonSchema } from './schema/builders.js';

/** "a whole number from 1 to 10", "one of Enforce, Shadow", "a duration from 1ms to 1h, such as 800ms or 2s". */
export function allowedText(schema: JsonSchema): string {
  if (schema.anyOf !== undefined) return schema.anyOf.map(allowedText).join(', or ');
  if (schema.enum !== undefined) {
    return schema.enum.length === 1 ? schema.enum.join() : `one of ${schema.enum.join(', ')}`;
  }
  const duration = schema['x-bulwark-duration'];
  if (duration !== undefined) {
    return `a duration from ${duration.min} to ${duration.max}: a whole number and one unit of ms, s, m, h, such as 800ms or 2s`;
  }
  const percent = schema['x-bulwark-percent'];
  if (percent !== undefined) return `a percentage ${percentRangeText(percent)}, such as 10% or 12.5%`;
  return plainText(schema);
}

function plainText(schema: JsonSchema): string {
  switch (schema.type) {
    case 'integer':
      return `a whole number from ${schema.minimum} to ${schema.maximum}`;
    case 'number':
      return `a number from ${schema.minimum} to ${schema.maximum}`;
    case 'boolean':
      return 'true or false';
    case 'string':
      return schema['x-bulwark-form'] ?? `text of at most ${schema.maxLength} characters`;
    case 'array':
      return `a list of ${schema.minItems} to ${schema.maxItems} entries`;
    case 'object': {
      const names = Object.keys(schema.properties ?? {});
      if (names.length > 0) return clip(`a map with ${names.join(', ')}`, 240);
      return schema.maxProperties === undefined
        ? 'a map'
        : `a map of at most ${schema.maxProperties} entries`;
    }
    default:
      return '';
  }
}
