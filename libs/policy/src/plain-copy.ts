/** Untrusted values become plain, bounded data before anything else looks at them. */
import { problem, type Path, type Problem } from './problem.js';
import type { JsonSchema } from './schema/builders.js';

/** Nesting of maps and lists, the outermost being 1. */
export const MAX_DEPTH = 64;
/** Values in one object, maps and lists included. */
export const MAX_VALUES = 50_000;

/** Keys that reach an object's prototype in careless code; no field is named so. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * A copy that shares nothing with `value`, made of plain objects and arrays with own members only. An optional known
 * field set to null is left out, as Kubernetes does: "null" and "absent" mean the same. In maps with free keys
 * (labels) null stays, and is refused later, since leaving it out would widen a selector.
 */
export function plainCopy(
  value: unknown,
  schema: JsonSchema,
): { readonly copy: unknown; readonly problems: readonly Problem[] } {
  const walk: Walk = { left: MAX_VALUES, problems: [] };
  const copy = copyValue(value, schema, { path: [], walk });
  return { copy, problems: walk.problems };
}

interface Walk {
  left: number;
  readonly problems: Problem[];
}
interface Place {
  readonly path: Path;
  readonly walk: Walk;
}

function copyValue(value: unknown, schema: JsonSchema | undefined, { path, walk }: Place): unknown {
  walk.left -= 1;
  if (typeof value !== 'object' || value === null) return value;
  if (path.length >= MAX_DEPTH) {
    if (walk.left > 0) walk.problems.push(tooMuch(path, `nested deeper than ${MAX_DEPTH} levels`));
    walk.left = 0;
    return null;
  }
  if (walk.left < 0) {
    if (walk.left > -MAX_VALUES)
      walk.problems.push(tooMuch(path, `the object holds more than ${MAX_VALUES} values`));
    walk.left = -MAX_VALUES;
    return null;
  }
  if (Array.isArray(value)) {
    const copy: unknown[] = [];
    for (let i = 0; i < value.length && walk.left >= 0; i += 1) {
      copy.push(copyValue(value[i], schema?.items, { path: [...path, i], walk }));
    }
    return copy;
  }
  return copyMap(value as Record<string, unknown>, schema, { path, walk });
}

function copyMap(
  value: Readonly<Record<string, unknown>>,
  schema: JsonSchema | undefined,
  { path, walk }: Place,
): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (walk.left < 0) break;
    if (FORBIDDEN_KEYS.has(key)) {
      walk.problems.push(problem([...path, key], 'forbidden', { message: `a key may not be named ${key}` }));
      continue;
    }
    const member = value[key];
    const known = memberSchema(schema, key);
    if (member === undefined || (member === null && known.optional)) continue;
    copy[key] = copyValue(member, known.schema, { path: [...path, key], walk });
  }
  return copy;
}

function memberSchema(
  schema: JsonSchema | undefined,
  key: string,
): { readonly schema: JsonSchema | undefined; readonly optional: boolean } {
  const branch = schema?.anyOf?.find((one) => one.type === 'object') ?? schema;
  const properties = branch?.properties;
  if (properties !== undefined && Object.hasOwn(properties, key))
    return { schema: properties[key], optional: true };
  return { schema: undefined, optional: false };
}

function tooMuch(path: Path, message: string): Problem {
  return problem(path.slice(0, 3), 'invalid', {
    message,
    allowed: `${MAX_DEPTH} levels, ${MAX_VALUES} values`,
  });
}
