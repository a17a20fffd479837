import type { BreakerGate } from './breaker-gate.js';

const WHOSE = {
  fleet: "the fleet's breaker",
  local: "this agent's own breaker",
  forced: 'the breaker',
} as const;

/** Which breaker decides now, for people: "the fleet's breaker", with its key unless there is only one for the target. */
export function breakerName(gate: BreakerGate, nowMs: number): string {
  const whose = WHOSE[gate.stateAt(nowMs).by];
  return gate.key === 'target' ? whose : `${whose} of ${gate.key}`;
}
