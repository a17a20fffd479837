/**
 * Builders of JSON Schema whose TypeScript types are TypeBox's, so that `Static` gives the type of what the schema
 * accepts. Only the types come from TypeBox: loading it costs 80 ms, more than everything else here together.
 *
 * `x-bulwark-…` keywords are extensions, so the schema is a legal part of an OpenAPI 3.0 document as it stands:
 * - `x-bulwark-duration: {min, max}`: a duration text within these, both included;
 * - `x-bulwark-percent: {min, max, above?, below?}`: a percent text; `above`/`below` leave the ends out;
 * - `x-bulwark-unique`: no entry twice (JSON Schema's own keyword is quadratic in ajv);
 * - `x-bulwark-keys`: the schema of a map's free keys;
 * - `x-bulwark-form`: the allowed form in words, for messages about a `pattern`.
 */
import type {
  TArray,
  TEnum,
  TInteger,
  TLiteral,
  TNumber,
  TObject,
  TOptional,
  TProperties,
  TRecord,
  TSchema,
  TString,
  TUnion,
} from 'typebox';

/** A schema as plain data: every keyword that is used, and no other. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly enum?: readonly string[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly 'x-bulwark-duration'?: DurationRange;
  readonly 'x-bulwark-percent'?: PercentRange;
  readonly 'x-bulwark-unique'?: boolean;
  readonly 'x-bulwark-keys'?: JsonSchema;
  readonly 'x-bulwark-form'?: string;
}

export interface DurationRange {
  /** In the duration grammar. */
  readonly min: string;
  readonly max: string;
}

export interface PercentRange {
  /** 0..100, in percent. */
  readonly min: number;
  readonly max: number;
  /** `min` itself is refused. */
  readonly above?: true;
  /** `max` itself is refused. */
  readonly below?: true;
}

type NoFields = Record<never, never>;
type Optionals<P extends TProperties> = { [K in keyof P]: TOptional<P[K]> };
interface ObjectRules {
  readonly minProperties?: number;
  readonly maxProperties?: number;
  /** True only for parts the server writes and may extend. */
  readonly open?: true;
}

/** A map of known fields; anything else is refused unless `open`. */
export function object<R extends TProperties = NoFields, O extends TProperties = NoFields>(
  description: string,
  fields: { readonly required?: R; readonly optional?: O } & ObjectRules,
): TObject<R & Optionals<O>> {
  const { required, optional, open, ...rules } = fields;
  return {
    type: 'object',
    description,
    properties: { ...required, ...optional },
    required: Object.keys(required ?? {}),
    additionalProperties: open === true,
    ...rules,
  } as unknown as TObject<R & Optionals<O>>;
}

/** A map from free names to texts. */
export function textMap(
  description: string,
  rules: { readonly keys: TSchema; readonly values: TSchema; readonly min?: number; readonly max: number },
): TRecord<'^.*$', TString> {
  return {
    type: 'object',
    description,
    'x-bulwark-keys': rules.keys,
    additionalProperties: rules.values,
    minProperties: rules.min ?? 0,
    maxProperties: rules.max,
  } as unknown as TRecord<'^.*$', TString>;
}

export function list<T extends TSchema>(
  description: string,
  items: T,
  rules: { readonly min?: number; readonly max: number; readonly repeats?: true },
): TArray<T> {
  return {
    type: 'array',
    description,
    items,
    minItems: rules.min ?? 0,
    maxItems: rules.max,
    ...(rules.repeats === true ? {} : { 'x-bulwark-unique': true }),
  } as unknown as TArray<T>;
}

export function text(
  description: string,
  rules: { readonly min?: number; readonly max: number; readonly pattern?: string; readonly form?: string },
): TString {
  return {
    type: 'string',
    description,
    minLength: rules.min ?? 0,
    maxLength: rules.max,
    ...(rules.pattern === undefined ? {} : { pattern: rules.pattern }),
    ...(rules.form === undefined ? {} : { 'x-bulwark-form': rules.form }),
  } as unknown as TString;
}

export function constant<V extends string>(description: string, value: V): TLiteral<V> {
  return { type: 'string', description, enum: [value] } as unknown as TLiteral<V>;
}

export function oneOf<V extends string>(description: string, values: readonly V[]): TEnum<V[]> {
  return { type: 'string', description, enum: values } as unknown as TEnum<V[]>;
}

export function integer(description: string, minimum: number, maximum: number): TInteger {
  return { type: 'integer', description, minimum, maximum } as unknown as TInteger;
}

export function number(description: string, minimum: number, maximum: number): TNumber {
  return { type: 'number', description, minimum, maximum } as unknown as TNumber;
}

export function flag(description: string): TSchema & { '~kind': 'Boolean'; type: 'boolean' } {
  return { type: 'boolean', description } as unknown as TSchema & { '~kind': 'Boolean'; type: 'boolean' };
}

/** At least one of several forms; they differ by JSON type, so that messages can tell which one was meant. */
export function either<A extends TSchema, B extends TSchema>(
  description: string,
  first: A,
  second: B,
): TUnion<[A, B]> {
  return { description, anyOf: [first, second] } as unknown as TUnion<[A, B]>;
}

export function duration(description: string, min: string, max: string): TString {
  const range: DurationRange = { min, max };
  return {
    type: 'string',
    description: `${description} A whole number and a unit (ms, s, m, h), from ${min} to ${max}.`,
    'x-bulwark-duration': range,
  } as unknown as TString;
}

export function percent(description: string, range: PercentRange): TString {
  return {
    type: 'string',
    description: `${description} A percentage ${percentRangeText(range)}.`,
    'x-bulwark-percent': range,
  } as unknown as TString;
}

/** "from 0% to 100%", "above 0%, up to 100%". */
export function percentRangeText(range: PercentRange): string {
  const low = range.above === true ? `above ${range.min}%` : `from ${range.min}%`;
  return `${low} ${range.below === true ? `and below ${range.max}%` : `to ${range.max}%`}`;
}
