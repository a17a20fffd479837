import { parseArgs } from 'node:util';
import { longForm } from './long-form.js';
import { printMeasures } from './print-measures.js';
import { randomRuns } from './random-runs.js';

/** How many random runs there are when nobody says. */
const RUNS = 2_000;

const usage = `npm run sim [-- --runs N [--seed S]]
  --runs N   only N random runs of fleets under faults, no long forms
  --seed S   the first seed; run n has seed S + n - 1 (default 1)
Exit code 1 when anything happened that must not.`;

/** A whole number of at least `least`; undefined = it is none. */
function whole(text: string, least: number): number | undefined {
  const value = Number(text);
  return Number.isSafeInteger(value) && value >= least ? value : undefined;
}

function main(): number {
  let values: { runs?: string | undefined; seed?: string | undefined };
  try {
    ({ values } = parseArgs({ options: { runs: { type: 'string' }, seed: { type: 'string' } } }));
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    return 64;
  }
  const runs = whole(values.runs ?? String(RUNS), 1);
  const seed = whole(values.seed ?? '1', 0);
  if (runs === undefined || seed === undefined) {
    console.error(`--runs needs a whole number from 1, --seed one from 0\n${usage}`);
    return 64;
  }
  let bad = randomRuns(runs, seed);
  if (values.runs === undefined) {
    bad += printMeasures();
    bad += longForm(seed);
  }
  return bad === 0 ? 0 : 1;
}

process.exitCode = main();
