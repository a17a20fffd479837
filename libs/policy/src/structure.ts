/**
 * Validation against the schema: a walk over the value and the schema side by side. It knows the part of JSON Schema
 * that `schema/builders.ts` writes, and throws for anything else, so nothing in a schema is silently without effect.
 * A test holds it against ajv on random documents; ajv itself costs 100 ms at start and writes code at run time,
 * which services that embed the agent may forbid.
 */
import { allowedText } from './allowed.js';
import { suggestDuration } from './duration.js';
import { nearestField, nearestWord } from './field-names.js';
import { formatOf, sizeProblem } from './structure-rules.js';
import { problem, valueText, type Path, type Problem } from './problem.js';
import type { JsonSchema } from './schema/builders.js';
import { suggestPercent } from './percent.js';

/** Suggestions for unknown fields in one answer. */
const MAX_SUGGESTIONS = 200;

interface Place {
  readonly path: Path;
  /** The union the schema is a branch of: what is allowed is said of the whole. */
  readonly union?: JsonSchema;
}

/** Everything about `value`, plain data, that the schema does not allow, in the order of the document. */
export function structuralProblems(schema: JsonSchema, value: unknown): Problem[] {
  const walk = new StructureWalk(schema);
  walk.check(schema, value, { path: [] });
  return walk.problems;
}

class StructureWalk {
  readonly problems: Problem[] = [];
  constructor(private readonly root: JsonSchema) {}

  check(schema: JsonSchema, value: unknown, place: Place): void {
    if (schema.anyOf !== undefined) {
      const branch = schema.anyOf.find((one) => hasType(one, value));
      if (branch === undefined) this.refuse(schema, value, place);
      else this.check(branch, value, { path: place.path, union: schema });
    } else if (!hasType(schema, value)) {
      this.refuse(schema, value, place);
    } else if (Array.isArray(value)) {
      this.list(schema, value, place);
    } else if (typeof value === 'object' && value !== null) {
      this.map(schema, value as Readonly<Record<string, unknown>>, place);
    } else {
      const message = formatOf(schema, value);
      if (message !== undefined) this.refuse(schema, value, place, message);
    }
  }

  private map(schema: JsonSchema, value: Readonly<Record<string, unknown>>, place: Place): void {
    const keys = Object.keys(value);
    this.size(schema, keys.length, place);
    for (const key of keys) {
      const path = [...place.path, key];
      if (schema.properties !== undefined && Object.hasOwn(schema.properties, key)) {
        this.check(schema.properties[key] ?? {}, value[key], { path });
      } else if (typeof schema.additionalProperties === 'object') {
        this.freeKey(schema, key, path);
        this.check(schema.additionalProperties, value[key], { path });
      } else if (schema.additionalProperties !== true) {
        this.unknown(schema, path, value[key]);
      }
    }
    for (const name of schema.required ?? []) {
      if (Object.hasOwn(value, name)) continue;
      const allowed = allowedText(schema.properties?.[name] ?? {});
      this.problems.push(problem([...place.path, name], 'required', { message: 'is required', allowed }));
    }
  }

  private freeKey(schema: JsonSchema, key: string, path: Path): void {
    const rule = schema['x-bulwark-keys'];
    if (rule === undefined || formatOf(rule, key) === undefined) return;
    const allowed = allowedText(rule);
    this.problems.push(problem(path, 'invalid', { message: 'is not a valid key', allowed, value: key }));
  }

  private list(schema: JsonSchema, list: readonly unknown[], place: Place): void {
    this.size(schema, list.length, place);
    const seen = new Set<unknown>();
    for (const [index, entry] of list.entries()) {
      const path = [...place.path, index];
      if (schema.items !== undefined) this.check(schema.items, entry, { path });
      if (schema['x-bulwark-unique'] !== true || typeof entry === 'object') continue;
      if (seen.has(entry)) {
        const message = `${valueText(entry)} stands in the list already`;
        this.problems.push(problem(path, 'duplicate', { message, allowed: 'each entry once', value: entry }));
      }
      seen.add(entry);
    }
  }

  private size(schema: JsonSchema, size: number, { path }: Place): void {
    const message = sizeProblem(schema, size);
    if (message === undefined) return;
    this.problems.push(problem(path, 'invalid', { message, allowed: allowedText(schema) }));
  }

  private refuse(schema: JsonSchema, value: unknown, place: Place, message?: string): void {
    this.problems.push(
      problem(place.path, 'invalid', {
        message: message ?? typeProblem(schema, value),
        allowed: allowedText(place.union ?? schema),
        value,
        suggestion: suggestValue(schema, value),
      }),
    );
  }

  private unknown(parent: JsonSchema, path: Path, value: unknown): void {
    this.problems.push(
      problem(path, 'unknown', {
        message: `${String(path.at(-1))} is not a field here`,
        allowed: Object.keys(parent.properties ?? {}).join(', '),
        value,
        // Costly, and nobody reads that many.
        suggestion:
          this.problems.length < MAX_SUGGESTIONS ? nearestField(this.root, parent, path) : undefined,
      }),
    );
  }
}

function hasType(schema: JsonSchema, value: unknown): boolean {
  switch (schema.type) {
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'array':
      return Array.isArray(value);
    case 'string':
    case 'boolean':
      return typeof value === schema.type;
    case 'integer':
      return Number.isInteger(value);
    case 'number':
      return Number.isFinite(value);
    default:
      throw new TypeError(`a schema of type ${String(schema.type)} is not understood`);
  }
}

function typeProblem(schema: JsonSchema, value: unknown): string {
  const bare = typeof value === 'number' && Number.isFinite(value);
  if (bare && isDuration(schema)) return `${value} has no unit`;
  if (bare && schema['x-bulwark-percent'] !== undefined) return `${value} has no % sign`;
  return `${valueText(value)} is not allowed`;
}

function isDuration(schema: JsonSchema): boolean {
  return schema['x-bulwark-duration'] !== undefined || schema.anyOf?.some(isDuration) === true;
}

function suggestValue(schema: JsonSchema, value: unknown): string | undefined {
  if (schema['x-bulwark-duration'] !== undefined) return usable(schema, value, suggestDuration(value));
  if (schema['x-bulwark-percent'] !== undefined) return usable(schema, value, suggestPercent(value));
  if (schema.enum?.length === 1) return schema.enum[0];
  if (schema.enum === undefined || typeof value !== 'string') return undefined;
  return nearestWord(value, schema.enum);
}

/** A suggestion that would itself be accepted, and is not what was written. */
function usable(schema: JsonSchema, value: unknown, suggestion: string | undefined): string | undefined {
  if (suggestion === undefined || suggestion === value) return undefined;
  return formatOf(schema, suggestion) === undefined ? suggestion : undefined;
}

/** The value at a path, own members only; undefined when there is none. */
export function at(value: unknown, path: Path): unknown {
  let here = value;
  for (const segment of path) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, segment)) return undefined;
    here = (here as Record<string | number, unknown>)[segment];
  }
  return here;
}
