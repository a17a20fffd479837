import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePolicy, type CompiledPolicy } from './compile.js';
import { comparePrecedence, matchesCaller, policyIndex, shadowed } from './match.js';

interface Sketch {
  readonly name: string;
  readonly service?: string;
  readonly operations?: readonly string[] | undefined;
  readonly callers?: Readonly<Record<string, string>>;
  readonly createdAtMs?: number;
}

function policy(sketch: Sketch): CompiledPolicy {
  return compilePolicy(
    {
      apiVersion: 'bulwark.dev/v1',
      kind: 'ResiliencePolicy',
      metadata: { name: sketch.name },
      spec: {
        target: {
          service: sketch.service ?? 'recs',
          ...(sketch.operations === undefined ? {} : { operations: [...sketch.operations] }),
        },
        ...(sketch.callers === undefined || Object.keys(sketch.callers).length === 0
          ? {}
          : { callers: { matchLabels: { ...sketch.callers } } }),
      },
    },
    { uid: sketch.name, generation: 1, createdAtMs: sketch.createdAtMs ?? 0 },
  );
}

const call = { service: 'recs', operation: 'GET /a', callerLabels: { app: 'web', zone: 'z1' } };
const winner = (...sketches: Sketch[]) => policyIndex(sketches.map(policy)).match(call)?.name;

describe('which policy guards a call', () => {
  it('none, when none matches', () => {
    expect(winner()).toBeUndefined();
    expect(winner({ name: 'other', service: 'pay' })).toBeUndefined();
    expect(winner({ name: 'op', operations: ['GET /b'] })).toBeUndefined();
    expect(winner({ name: 'caller', callers: { app: 'batch' } })).toBeUndefined();
    expect(winner({ name: 'inherited', callers: { toString: 'x' } })).toBeUndefined();
  });

  it('named operations win over all operations, even over more caller labels', () => {
    expect(
      winner({ name: 'all', callers: { app: 'web', zone: 'z1' } }, { name: 'named', operations: ['GET /a'] }),
    ).toBe('named');
  });

  it('more caller labels win over fewer, even over the older', () => {
    expect(
      winner({ name: 'old', createdAtMs: 1 }, { name: 'labelled', callers: { app: 'web' }, createdAtMs: 9 }),
    ).toBe('labelled');
  });

  it('the older wins a tie, then the name', () => {
    expect(winner({ name: 'b', createdAtMs: 2 }, { name: 'a', createdAtMs: 3 })).toBe('b');
    expect(winner({ name: 'b', createdAtMs: 2 }, { name: 'a', createdAtMs: 2 })).toBe('a');
  });

  it('a policy whose caller does not match gives way to one that does', () => {
    expect(
      winner({ name: 'named', operations: ['GET /a'], callers: { app: 'batch' } }, { name: 'all' }),
    ).toBe('all');
  });
});

const sketches = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom(...'abcdefgh'),
    service: fc.constantFrom('recs', 'pay'),
    operations: fc.option(fc.uniqueArray(fc.constantFrom('GET /a', 'GET /b'), { minLength: 1 }), {
      nil: undefined,
    }),
    callers: fc.dictionary(fc.constantFrom('app', 'zone'), fc.constantFrom('x', 'y')),
    createdAtMs: fc.nat(2),
  }),
  { selector: (one) => one.name, maxLength: 8 },
);
const everyCall = ['recs', 'pay'].flatMap((service) =>
  ['GET /a', 'GET /b', 'GET /other'].flatMap((operation) =>
    [undefined, 'x', 'y'].flatMap((app) =>
      [undefined, 'x', 'y'].map((zone) => ({
        service,
        operation,
        callerLabels: { ...(app && { app }), ...(zone && { zone }) },
      })),
    ),
  ),
);

describe('the index', () => {
  it('finds what a search through all of them finds', () => {
    fc.assert(
      fc.property(sketches, (some) => {
        const policies = some.map(policy);
        const index = policyIndex(policies);
        for (const one of everyCall) {
          const [best] = policies
            .filter(
              ({ target, ...rest }) =>
                target.service === one.service &&
                (target.operations?.includes(one.operation) ?? true) &&
                matchesCaller(rest, one.callerLabels),
            )
            .sort(comparePrecedence);
          expect(index.match(one)?.name).toBe(best?.name);
        }
      }),
    );
  });
});

describe('a shadowed policy', () => {
  it('is one that never wins, and names who does', () => {
    const found = shadowed([
      policy({ name: 'first', createdAtMs: 1 }),
      policy({ name: 'second', createdAtMs: 2 }),
      policy({ name: 'labelled', callers: { app: 'x' }, createdAtMs: 3 }),
    ]);
    expect(found.map(({ policy: one, by }) => [one.name, by.map((other) => other.name)])).toEqual([
      ['second', ['first']],
    ]);
  });

  it('may lose each of its operations to another policy', () => {
    const found = shadowed([
      policy({ name: 'a', operations: ['GET /a'], createdAtMs: 1 }),
      policy({ name: 'b', operations: ['GET /b'], createdAtMs: 1 }),
      policy({ name: 'both', operations: ['GET /b', 'GET /a'], createdAtMs: 2 }),
    ]);
    expect(found.map(({ policy: one, by }) => [one.name, by.map((other) => other.name)])).toEqual([
      ['both', ['a', 'b']],
    ]);
  });

  it('wins none of all possible calls, and every other wins one', () => {
    fc.assert(
      fc.property(sketches, (some) => {
        const policies = some.map(policy);
        const index = policyIndex(policies);
        const winners = new Set(everyCall.map((one) => index.match(one)?.name));
        const losers = new Set(shadowed(policies).map((one) => one.policy.name));
        for (const { name } of policies) expect(losers.has(name)).toBe(!winners.has(name));
      }),
    );
  });
});
