import type { BreakerSettings } from '@bulwark/resilience';
import { recoveryShares, suddenDeath } from './measures.js';
import { CONSECUTIVE, HALF } from './rules.js';

/** A step may miss its share by so much. */
const STEP_TOLERANCE = 0.02;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/** Prints how fast a dead dependency is found and what recovery admits. @returns how many figures missed their reach */
export function printMeasures(): number {
  return (
    printDeath('10 consecutive failures', CONSECUTIVE, 100) +
    printDeath('50 % of at least 20 calls in 10 s', HALF, 600) +
    printShares(200, 0.5) +
    printShares(20, 20)
  );
}

function printDeath(name: string, trip: BreakerSettings['trip'], reachMs: number): number {
  const deaths = SEEDS.map((seed) => suddenDeath(trip, { agents: 20, callsPerSecond: 20, seed }));
  const worst = (of: (death: (typeof deaths)[number]) => number | undefined): number =>
    Math.max(...deaths.map((death) => of(death) ?? Infinity));
  const decidedMs = worst((death) => death.decidedMs);
  const probes = new Set(deaths.map((death) => death.probes));
  console.log(
    `20 agents × 20 calls/s die at once, ${name}: decided after at most ${Math.round(decidedMs)} ms ` +
      `(reach ${reachMs} ms), last agent after at most ${Math.round(worst((death) => death.lastAgentMs))} ms, ` +
      `at most ${worst((death) => death.wasted)} calls wasted, probes in two cooldowns: ${[...probes].join(' or ')}`,
  );
  return (decidedMs <= reachMs ? 0 : 1) + (probes.size === 1 && probes.has(2) ? 0 : 1);
}

function printShares(agents: number, callsPerSecond: number): number {
  let missed = 0;
  for (const { share, offered, admitted } of recoveryShares(CONSECUTIVE, {
    agents,
    callsPerSecond,
    seed: 1,
  })) {
    const ok = Math.abs(admitted / offered - share) <= STEP_TOLERANCE;
    if (!ok) missed += 1;
    const percent = ((100 * admitted) / offered).toFixed(1);
    console.log(
      `${agents} agents × ${callsPerSecond} calls/s, step of ${share * 100} %: ` +
        `${admitted} of ${offered} admitted (${percent} %)${ok ? '' : ': too far off'}`,
    );
  }
  return missed;
}
