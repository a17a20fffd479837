/** Validation against the schema. ajv finds, this file says. The validator is built on first use (about 20 ms). */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { allowedText } from './allowed.js';
import { parseDuration, suggestDuration } from './duration.js';
import { nearestField, nearestWord } from './field-names.js';
import { parsePercent, suggestPercent } from './percent.js';
import { problem, valueText, type Path, type Problem } from './problem.js';
import type { DurationRange, JsonSchema, PercentRange } from './schema/builders.js';

type Found = ErrorObject<string, Record<string, unknown>, JsonSchema>;

const validators = new WeakMap<JsonSchema, ValidateFunction>();

/** Everything about `value` that the schema does not allow, in the order of the document. */
export function structuralProblems(schema: JsonSchema, value: unknown): Problem[] {
  let validate = validators.get(schema);
  if (validate === undefined) {
    validate = buildValidator(schema);
    validators.set(schema, validate);
  }
  if (validate(value)) return [];
  const found = (validate.errors ?? []) as Found[];
  return withoutUnionNoise(found)
    .map((one) => describe(one, { schema, value }))
    .filter((one) => one !== undefined);
}

function buildValidator(schema: JsonSchema): ValidateFunction {
  const ajv = new Ajv({
    allErrors: true,
    strict: true,
    verbose: true,
    ownProperties: true,
    messages: false,
    meta: false,
    validateSchema: false,
  });
  ajv.addKeyword({ keyword: 'x-bulwark-form', schemaType: 'string' });
  ajv.addKeyword({
    keyword: 'x-bulwark-unique',
    type: 'array',
    schemaType: 'boolean',
    validate: (_: boolean, list: readonly unknown[]) => firstDouble(list) === undefined,
    errors: false,
  });
  ajv.addKeyword({
    keyword: 'x-bulwark-duration',
    type: 'string',
    schemaType: 'object',
    validate: (range: DurationRange, text: string) => inDuration(range, text),
    errors: false,
  });
  ajv.addKeyword({
    keyword: 'x-bulwark-percent',
    type: 'string',
    schemaType: 'object',
    validate: (range: PercentRange, text: string) => inPercent(range, text),
    errors: false,
  });
  return ajv.compile(schema);
}

function inDuration(range: DurationRange, text: string): boolean {
  const ms = parseDuration(text);
  return ms !== undefined && ms >= (parseDuration(range.min) ?? 0) && ms <= (parseDuration(range.max) ?? 0);
}

function inPercent(range: PercentRange, text: string): boolean {
  const ratio = parsePercent(text);
  if (ratio === undefined) return false;
  const [min, max] = [range.min / 100, range.max / 100];
  return (
    (range.above === true ? ratio > min : ratio >= min) && (range.below === true ? ratio < max : ratio <= max)
  );
}

/** Place of the first entry that stood before; entries that are no plain values are left to other checks. */
function firstDouble(list: readonly unknown[]): number | undefined {
  const seen = new Set<unknown>();
  for (const [index, entry] of list.entries()) {
    if (typeof entry === 'object') continue;
    if (seen.has(entry)) return index;
    seen.add(entry);
  }
  return undefined;
}

/**
 * Of a union, keeps what helps: the branch whose JSON type the value has, when there is exactly one, else only that
 * no branch fits.
 */
function withoutUnionNoise(found: readonly Found[]): Found[] {
  let kept = found.filter((one) => one.propertyName === undefined);
  for (const union of found.filter((one) => one.keyword === 'anyOf')) {
    const inside = (one: Found) =>
      one !== union &&
      one.schemaPath.startsWith(`${union.schemaPath}/`) &&
      (one.instancePath === union.instancePath || one.instancePath.startsWith(`${union.instancePath}/`));
    const branchOf = (one: Found) => one.schemaPath.slice(union.schemaPath.length + 1).split('/')[0];
    const wrongType = new Set(
      found
        .filter((one) => inside(one) && one.keyword === 'type' && one.instancePath === union.instancePath)
        .map(branchOf),
    );
    const fitting = new Set(
      found
        .filter(inside)
        .map(branchOf)
        .filter((branch) => !wrongType.has(branch)),
    );
    kept = kept.filter((one) => {
      if (one === union) return fitting.size !== 1;
      return !inside(one) || (fitting.size === 1 && fitting.has(branchOf(one)));
    });
  }
  return kept;
}

interface Whole {
  readonly schema: JsonSchema;
  readonly value: unknown;
}

function describe(found: Found, whole: Whole): Problem | undefined {
  const path = pathOf(found.instancePath, whole.value);
  const parent = found.parentSchema as JsonSchema;
  const { params, data: value } = found;
  switch (found.keyword) {
    case 'additionalProperties':
      return unknownField([...path, String(params['additionalProperty'])], parent, whole);
    case 'required': {
      const name = String(params['missingProperty']);
      const allowed = allowedText(parent.properties?.[name] ?? {});
      return problem([...path, name], 'required', { message: 'is required', allowed });
    }
    case 'propertyNames': {
      const name = String(params['propertyName']);
      const allowed = allowedText((parent['propertyNames'] ?? {}) as JsonSchema);
      return problem([...path, name], 'invalid', { message: 'is not a valid key', allowed, value: name });
    }
    case 'x-bulwark-unique': {
      const list = value as readonly unknown[];
      const index = firstDouble(list) ?? 0;
      return problem([...path, index], 'duplicate', {
        message: `${valueText(list[index])} stands in the list already`,
        allowed: 'each entry once',
        value: list[index],
      });
    }
    default:
      return problem(path, 'invalid', {
        message: invalidMessage(found, parent),
        allowed: allowedText(parent),
        value,
        suggestion: suggestValue(parent, value),
      });
  }
}

function unknownField(path: Path, parent: JsonSchema, whole: Whole): Problem {
  const suggestion = nearestField(whole.schema, parent, path);
  return problem(path, 'unknown', {
    message: `${String(path.at(-1))} is not a field here`,
    allowed: Object.keys(parent.properties ?? {}).join(', '),
    value: at(whole.value, path),
    suggestion,
  });
}

function invalidMessage(found: Found, parent: JsonSchema): string {
  const value = valueText(found.data);
  switch (found.keyword) {
    case 'minProperties':
      return `has no entry`;
    case 'maxProperties':
      return `has ${Object.keys(found.data as object).length} entries, more than ${String(parent['maxProperties'])}`;
    case 'minItems':
      return `has no entry`;
    case 'maxItems':
      return `has ${(found.data as unknown[]).length} entries, more than ${String(parent['maxItems'])}`;
    case 'maxLength':
      return `has ${(found.data as string).length} characters, more than ${String(parent['maxLength'])}`;
    case 'minLength':
      return 'is empty';
    case 'minimum':
    case 'maximum':
      return `${value} is out of range`;
    case 'x-bulwark-duration':
      return parseDuration(found.data) === undefined
        ? `${value} is not a duration`
        : `${value} is out of range`;
    case 'x-bulwark-percent':
      return parsePercent(found.data) === undefined
        ? `${value} is not a percentage`
        : `${value} is out of range`;
    default:
      return `${value} is not allowed`;
  }
}

function suggestValue(schema: JsonSchema, value: unknown): string | undefined {
  if (schema['x-bulwark-duration'] !== undefined) return differing(suggestDuration(value), value);
  if (schema['x-bulwark-percent'] !== undefined) return suggestPercent(value);
  if (schema.const !== undefined) return String(schema.const);
  if (schema.enum !== undefined && typeof value === 'string') {
    return nearestWord(
      value,
      schema.enum.filter((one) => typeof one === 'string'),
    );
  }
  return undefined;
}

function differing(suggestion: string | undefined, value: unknown): string | undefined {
  return suggestion === undefined || parseDuration(value) !== undefined ? undefined : suggestion;
}

/** A JSON pointer as keys and list places; which of both a number is, the value tells. */
function pathOf(pointer: string, value: unknown): Path {
  const path: (string | number)[] = [];
  let here = value;
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    const segment = Array.isArray(here) ? Number(key) : key;
    path.push(segment);
    here = at(here, [segment]);
  }
  return path;
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
