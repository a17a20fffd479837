import { randomFailures } from './random-failures.js';

const HOUR_MS = 3_600_000;
const CALLS_PER_SECOND = 1_000;
const WINDOW_MS = 10_000;

/**
 * Days of a dependency that fails at random below the rule of 50 %: no trip; above it: a trip within two windows.
 * @returns how many of them came out otherwise
 */
export function longForm(seed: number, hours = 24): number {
  let wrong = 0;
  for (const agents of [20, 200]) {
    for (const failing of [0.05, 0.2, 0.4]) {
      const began = performance.now();
      const outcome = randomFailures({
        agents,
        callsPerSecond: CALLS_PER_SECOND,
        failing,
        forMs: hours * HOUR_MS,
        seed,
      });
      const tripped = outcome.trippedMs !== undefined;
      if (tripped) wrong += 1;
      console.log(
        `${hours} h, ${agents} agents, ${CALLS_PER_SECOND} calls/s, ${failing * 100} % failing: ` +
          `${tripped ? `TRIPPED at ${outcome.trippedMs} ms: ${outcome.message}` : 'no trip'} ` +
          `(${outcome.reports} reports, ${outcome.polls} polls, ${Math.round((performance.now() - began) / 1000)} s)`,
      );
    }
    wrong += aboveTheRule(agents, seed);
  }
  return wrong;
}

/** From the beginning, and after a healthy hour's window. */
function aboveTheRule(agents: number, seed: number): number {
  const fleet = { agents, callsPerSecond: CALLS_PER_SECOND, seed };
  const cold = randomFailures({ ...fleet, failing: 0.6, forMs: 60_000 });
  const then = { atMs: 60_000, failing: 0.6 };
  const warm = randomFailures({ ...fleet, failing: 0.01, then, forMs: 120_000 });
  const coldMs = cold.trippedMs ?? Infinity;
  const warmMs = (warm.trippedMs ?? Infinity) - then.atMs;
  console.log(
    `${agents} agents, 60 % failing: trip after ${Math.round(coldMs)} ms from the start, ` +
      `${Math.round(warmMs)} ms in a healthy fleet (reach ${2 * WINDOW_MS} ms)`,
  );
  return Number(coldMs > 2 * WINDOW_MS) + Number(!(warmMs >= 0 && warmMs <= 2 * WINDOW_MS));
}
