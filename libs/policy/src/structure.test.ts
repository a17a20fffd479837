/** The walk over the schema agrees with ajv, an independent reader of the same schema. */
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDuration } from './duration.js';
import { parseDocuments } from './documents.js';
import { EXAMPLE_POLICY } from './example.js';
import { parsePercent } from './percent.js';
import type { DurationRange, JsonSchema, PercentRange } from './schema/builders.js';
import { policyJsonSchema } from './schema/policy.js';
import { structuralProblems } from './structure.js';

const ajv = new Ajv({ allErrors: true, strict: true, ownProperties: true });
ajv.addVocabulary(['x-bulwark-form']);
ajv.addKeyword({
  keyword: 'x-bulwark-keys',
  type: 'object',
  macro: (keys: JsonSchema) => ({ propertyNames: keys }),
});
ajv.addKeyword({
  keyword: 'x-bulwark-unique',
  type: 'array',
  validate: (_: boolean, list: unknown[]) => {
    const plain = list.filter((one) => typeof one !== 'object');
    return new Set(plain).size === plain.length;
  },
});
ajv.addKeyword({
  keyword: 'x-bulwark-duration',
  type: 'string',
  validate: (range: DurationRange, text: string) => {
    const ms = parseDuration(text);
    return ms !== undefined && ms >= parseDuration(range.min)! && ms <= parseDuration(range.max)!;
  },
});
ajv.addKeyword({
  keyword: 'x-bulwark-percent',
  type: 'string',
  validate: (range: PercentRange, text: string) => {
    const percent = parsePercent(text);
    if (percent === undefined) return false;
    if (range.above === true && percent <= range.min / 100) return false;
    if (range.below === true && percent >= range.max / 100) return false;
    return percent >= range.min / 100 && percent <= range.max / 100;
  },
});
// Strict mode refuses keywords ajv does not know: the schema holds nothing that is silently without effect.
const oracle = ajv.compile(policyJsonSchema);

const odd = fc.constantFrom<unknown>(
  ...[
    0,
    1,
    2,
    10,
    11,
    -1,
    0.5,
    404,
    600,
    NaN,
    1e308,
    '',
    'x',
    '5xx',
    '5s',
    '0s',
    '25h',
    '1ms',
    '10%',
    '0%',
    '100%',
  ],
  ...[
    '101%',
    'target',
    'call.x',
    'GET /a',
    'a.b/C',
    'GET',
    'UNAVAILABLE',
    'Fleet',
    'none',
    'header:x',
    'x'.repeat(400),
  ],
  ...[
    true,
    false,
    null,
    [],
    {},
    ['GET', 'GET'],
    [503, '5xx'],
    { calls: 5 },
    { calls: 0 },
    { a: 'b' },
    [{}],
    ['10%'],
  ],
);

interface Edit {
  readonly steps: readonly number[];
  readonly value: unknown;
  readonly kind: 'replace' | 'remove' | 'add';
  readonly key: string;
}
const names = allNames(policyJsonSchema);
const edit: fc.Arbitrary<Edit> = fc.record({
  steps: fc.array(fc.nat(20), { minLength: 1, maxLength: 6 }),
  value: odd,
  kind: fc.constantFrom('replace', 'remove', 'add'),
  key: fc.constantFrom(...names, 'nonsense', 'toString'),
});

/** Walks down by the steps and changes one member. */
function apply(root: unknown, { steps, value, kind, key }: Edit): void {
  let here = root as Record<string, unknown>;
  for (const step of steps) {
    const keys = Object.keys(here);
    if (keys.length === 0) break;
    const next = keys[step % keys.length]!;
    const child = here[next];
    if (typeof child === 'object' && child !== null && step !== steps.at(-1)) {
      here = child as Record<string, unknown>;
      continue;
    }
    if (Array.isArray(here)) {
      if (kind === 'remove') here.splice(Number(next), 1);
      else here.push(value);
    } else if (kind === 'remove') delete here[next];
    else here[kind === 'add' ? key : next] = value;
    return;
  }
}

function allNames(schema: JsonSchema): string[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, member]) => [
    name,
    ...allNames(member),
  ]);
  return [...own, ...(schema.items ? allNames(schema.items) : []), ...(schema.anyOf ?? []).flatMap(allNames)];
}

describe('the walk over the schema', () => {
  it('accepts and refuses what ajv does, on 5,000 edited policies', async () => {
    const [example] = await parseDocuments(EXAMPLE_POLICY, { source: 'example' });
    let refused = 0;
    fc.assert(
      fc.property(fc.array(edit, { maxLength: 3 }), (edits) => {
        const value = structuredClone(example?.value);
        // A fresh copy: the values are shared between runs, and later edits change them.
        for (const one of edits) apply(value, structuredClone(one));
        const problems = structuralProblems(policyJsonSchema, value);
        const agreed = oracle(value);
        if (!agreed) refused += 1;
        if ((problems.length === 0) !== agreed)
          throw new Error(JSON.stringify([value, problems, oracle.errors]));
      }),
      { numRuns: 5_000 },
    );
    expect(refused).toBeGreaterThan(1_000);
    expect(refused).toBeLessThan(4_900);
  });

  it('describes every field', () => {
    const bare: string[] = [];
    const visit = (schema: JsonSchema, path: string): void => {
      if ((schema.description ?? '') === '') bare.push(path);
      for (const [name, member] of Object.entries(schema.properties ?? {})) visit(member, `${path}.${name}`);
      if (schema.items !== undefined) visit(schema.items, `${path}[]`);
      for (const one of schema.anyOf ?? []) visit(one, `${path}|`);
    };
    visit(policyJsonSchema, '');
    expect(bare).toEqual([]);
  });

  it('has no field named like a boolean of YAML 1.1', () => {
    const booleans = new Set(['y', 'n', 'yes', 'no', 'on', 'off', 'true', 'false']);
    expect(names.filter((name) => booleans.has(name.toLowerCase()))).toEqual([]);
  });

  it('throws for a schema it does not understand', () => {
    expect(() => structuralProblems({ description: 'no type' }, 1)).toThrow(TypeError);
  });
});
