import type { BreakerSettings } from '@bulwark/resilience';
import { Chance } from './chance.js';
import { breaker } from './rules.js';
import { SimFleet } from './sim-fleet.js';

const CLEAN = { lost: 0, doubled: 0, cancelled: 0, latencyMs: 4 };
/** Long enough that the window is full of successes. */
const HEALTHY_MS = 20_000;

export interface Death {
  /** First failed call to the trip's decision; undefined = no trip within 30 s. */
  readonly decidedMs: number | undefined;
  /** … to the last agent under the open verdict. */
  readonly lastAgentMs: number | undefined;
  /** Calls that reached the dead dependency before that. */
  readonly wasted: number;
  /** Probes in the first two cooldowns (5 s and 10 s). */
  readonly probes: number;
}

/** A healthy fleet whose dependency dies at once. */
export function suddenDeath(
  trip: BreakerSettings['trip'],
  fleet: { readonly agents: number; readonly callsPerSecond: number; readonly seed: number },
): Death {
  const chance = new Chance(fleet.seed);
  let [firstMs, decidedMs, lastAgentMs]: (number | undefined)[] = [];
  let wasted = 0;
  const protectedAgents = new Set<number>();
  const sim: SimFleet = new SimFleet(
    { ...CLEAN, ...fleet, settings: breaker(trip), chance, logCalls: true },
    {
      effect: ({ kind }) => {
        if (kind === 'write') decidedMs ??= sim.queue.nowMs;
      },
      delivered: ({ index }) => {
        protectedAgents.add(index);
        if (protectedAgents.size === sim.agents.length) lastAgentMs ??= sim.queue.nowMs;
      },
      ended: (_agent, ok) => {
        if (!ok) firstMs ??= sim.queue.nowMs;
      },
    },
  );
  sim.queue.runUntil(HEALTHY_MS);
  sim.dependency.failing = 1;
  sim.queue.runUntil(HEALTHY_MS + 20_000);
  const dead = sim.dependency.log.filter(({ atMs }) => atMs >= HEALTHY_MS);
  wasted = dead.filter(({ probe }) => !probe).length;
  const since = (ms: number | undefined): number | undefined =>
    ms === undefined || firstMs === undefined ? undefined : ms - firstMs;
  return {
    decidedMs: since(decidedMs),
    lastAgentMs: since(lastAgentMs),
    wasted,
    probes: dead.filter(({ probe }) => probe).length,
  };
}

export interface StepShare {
  readonly share: number;
  readonly offered: number;
  readonly admitted: number;
}

/** A fleet whose dependency dies and recovers: what share of the calls each step admitted. */
export function recoveryShares(
  trip: BreakerSettings['trip'],
  fleet: { readonly agents: number; readonly callsPerSecond: number; readonly seed: number },
): StepShare[] {
  const steps: { share: number; offered: number; admitted: number }[] = [];
  const chance = new Chance(fleet.seed);
  const sim: SimFleet = new SimFleet(
    { ...CLEAN, ...fleet, settings: breaker(trip), chance },
    {
      offered: (agent, admitted) => {
        const verdict = agent.gate.verdictAt(sim.queue.nowMs);
        if (verdict?.state !== 'recovering') return;
        const { share } = verdict;
        let step = steps.find((one) => one.share === share);
        if (step === undefined) steps.push((step = { share, offered: 0, admitted: 0 }));
        step.offered += 1;
        if (admitted) step.admitted += 1;
      },
    },
  );
  sim.queue.runUntil(HEALTHY_MS);
  sim.dependency.failing = 1;
  sim.queue.runUntil(HEALTHY_MS + 4_000);
  sim.dependency.failing = 0;
  sim.queue.runUntil(HEALTHY_MS + 120_000);
  return steps;
}
