import { randomRun, type RunResult } from './random-run.js';

/** Seeds shown with their violations; the others are counted. */
const SHOWN = 20;

/** Runs seeds one after the other, prints what went wrong. @returns how many runs had a violation */
export function randomRuns(runs: number, firstSeed: number): number {
  const began = performance.now();
  let [bad, trips, closes] = [0, 0, 0];
  let slowest: RunResult | undefined;
  for (let seed = firstSeed; seed < firstSeed + runs; seed += 1) {
    const result = randomRun(seed);
    trips += result.trips;
    closes += result.closes;
    if ((result.healedMs ?? 0) > (slowest?.healedMs ?? 0)) slowest = result;
    if (result.violations.length === 0) continue;
    bad += 1;
    if (bad <= SHOWN) print(result);
  }
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(
    `${runs} random runs in ${seconds} s: ${trips} trips, ${closes} closes, ${bad} runs with violations; ` +
      `longest time from healthy to closed ${((slowest?.healedMs ?? 0) / 1000).toFixed(1)} s (seed ${slowest?.seed ?? 0})`,
  );
  return bad;
}

function print({ seed, violations }: RunResult): void {
  console.log(`seed ${seed} (again: npm run sim -- --runs 1 --seed ${seed})`);
  for (const violation of violations) console.log(`  ${violation}`);
}
