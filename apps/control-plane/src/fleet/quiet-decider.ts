import type { FleetDecider } from '@bulwark/fleet';

/** Decides nothing and holds nothing: a stand-in where no fleet decisions are wanted. */
export function quietDecider(): FleetDecider {
  return {
    setRule: () => [],
    agentUp: () => [],
    agentDown: () => [],
    report: () => [],
    written: () => [],
    force: () => [],
    tick: () => [],
    wakeAtMs: () => Infinity,
    views: () => [],
  };
}
