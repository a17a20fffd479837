import { randomRun } from './random-run.js';
const from = Number(process.argv[2] ?? 1);
const to = Number(process.argv[3] ?? 100);
let bad = 0;
let trips = 0;
let closes = 0;
const t = performance.now();
const kinds = new Map<string, number>();
for (let seed = from; seed <= to; seed += 1) {
  const result = randomRun(seed);
  trips += result.trips;
  closes += result.closes;
  if (result.violations.length > 0) {
    bad += 1;
    if (bad <= 12) console.log(result.seed, result.violations.slice(0, 3));
  }
}
console.log({ bad, trips, closes, ms: performance.now() - t });
