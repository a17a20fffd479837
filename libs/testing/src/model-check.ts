import fc from 'fast-check';

/**
 * Model tests run this often, from a fixed seed, so that a red build is red again. To look elsewhere set BULWARK_MODEL_SEED
 * (a whole number, or "random") and BULWARK_MODEL_RUNS; a failure prints its seed and path.
 */
const RUNS = 10_000;
const SEED = 20_261_130;

function parameters(times: number): { readonly numRuns: number; readonly seed?: number } {
  const { BULWARK_MODEL_RUNS: runs, BULWARK_MODEL_SEED: seed } = process.env;
  return {
    numRuns: Math.ceil(times * (runs === undefined ? RUNS : Number(runs))),
    ...(seed !== 'random' && { seed: seed === undefined ? SEED : Number(seed) }),
  };
}

/** Checks a property in `times` × 10,000 random runs (a half = 5,000); throws with the smallest counterexample found. */
export function checkModel<Ts>(property: fc.IProperty<Ts>, times = 1): void {
  fc.assert(property, parameters(times));
}

export async function checkModelAsync<Ts>(property: fc.IAsyncProperty<Ts>, times = 1): Promise<void> {
  await fc.assert(property, parameters(times));
}

/** Lists of any length up to the greatest, evenly: by default fast-check makes short ones only. */
export function commandsOf<C>(command: fc.Arbitrary<C>, maxLength: number): fc.Arbitrary<C[]> {
  return fc.array(command, { maxLength, size: 'max' });
}

/** What a model test compares with, millions of times: an assertion library's `expect` would be most of its run time. */
export function agree<V extends string | number | boolean | undefined>(
  actual: V,
  expected: V,
  what: string,
): void {
  if (!Object.is(actual, expected)) {
    throw new Error(`${what}: got ${String(actual)}, the model says ${String(expected)}`);
  }
}
