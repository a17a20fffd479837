import type { BreakerSettings } from '@bulwark/resilience';
import { describe, expect, test } from 'vitest';
import { Chance } from '../sim/src/chance.js';
import { breaker, CONSECUTIVE, HALF } from '../sim/src/rules.js';
import { SimFleet } from '../sim/src/sim-fleet.js';

const BROKEN = 1;
const rules = [
  ['10 consecutive failures', CONSECUTIVE],
  ['50 % of at least 20 calls in 10 s', HALF],
] as const;

/** A fleet in which one agent cannot reach the dependency from the 20th second on. */
function fleetWithBroken(
  agents: number,
  rates: { readonly each: number; readonly broken: number },
  trip: BreakerSettings['trip'],
): SimFleet {
  const fleet = new SimFleet({
    settings: breaker(trip),
    agents,
    callsPerSecond: rates.each,
    callsPerSecondOf: new Map([[BROKEN, rates.broken]]),
    chance: new Chance(agents),
    lost: 0,
    doubled: 0,
    cancelled: 0,
    latencyMs: 4,
  });
  fleet.queue.runUntil(20_000);
  fleet.dependency.cutOff.add(BROKEN);
  return fleet;
}

describe.each(rules)('one agent with a broken network, %s', (_name, trip) => {
  test.each([
    ['C089: of 10, with ten times the traffic of the others', 10, { each: 2, broken: 20 }],
    ['of 50, with two thirds of all calls', 50, { each: 1, broken: 100 }],
    ['of 2', 2, { each: 5, broken: 50 }],
  ])('%s: only it opens', (_case, agents, rates) => {
    const fleet = fleetWithBroken(agents, rates, trip);
    for (let second = 21; second <= 80; second += 1) {
      fleet.queue.runUntil(second * 1_000);
      expect(fleet.store.verdict?.state ?? 'closed').toBe('closed');
    }
    const [view] = fleet.host.decider.views('sim', { ms: fleet.queue.nowMs, unixMs: 0 });
    expect(view?.localised).toEqual([fleet.agents[BROKEN]?.id]);
  });

  test('thirty of fifty: the fleet', () => {
    const fleet = fleetWithBroken(50, { each: 2, broken: 2 }, trip);
    for (let index = 0; index < 30; index += 1) fleet.dependency.cutOff.add(index);
    fleet.queue.runUntil(60_000);
    const tripped = fleet.store.verdict?.transitions.some(({ to }) => to === 'open') ?? false;
    // A run of ten failures with no success of twenty healthy agents in between is no thing that happens.
    expect(tripped).toBe(trip === HALF);
  });
});
