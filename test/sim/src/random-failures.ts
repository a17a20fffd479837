import type { BreakerSettings } from '@bulwark/resilience';
import { Chance } from './chance.js';
import { type Audience, SimDeciderHost, SimStore } from './decider-host.js';
import { EventQueue } from './event-queue.js';
import { PoissonAgent } from './poisson-agent.js';
import { breaker, HALF } from './rules.js';

export interface RandomFailures {
  readonly agents: number;
  /** Of the whole fleet. */
  readonly callsPerSecond: number;
  /** 0..1: this share of the calls fails, from the beginning. */
  readonly failing: number;
  /** From `atMs` on it is another share. */
  readonly then?: { readonly atMs: number; readonly failing: number };
  readonly forMs: number;
  readonly seed: number;
  /** Default: 50 % of at least 20 calls in 10 s. */
  readonly trip?: BreakerSettings['trip'];
}

export interface RandomOutcome {
  /** Simulated time of the first trip; undefined = none. */
  readonly trippedMs: number | undefined;
  readonly message: string | undefined;
  readonly polls: number;
  readonly reports: number;
}

/** A fleet calls a dependency that fails at random; ends at the first trip. */
export function randomFailures(options: RandomFailures): RandomOutcome {
  const queue = new EventQueue();
  const chance = new Chance(options.seed);
  const settings = breaker(options.trip ?? HALF);
  const agents = new Map<string, PoissonAgent>();
  const networkMs = (): number => chance.between(1, 10);
  let [polls, reports] = [0, 0];
  let trippedMs: number | undefined;
  let message: string | undefined;
  const audience: Audience = {
    push: (verdict) => {
      trippedMs ??= queue.nowMs;
      message ??= verdict.message;
    },
    poll: (pollId, ids) => {
      polls += 1;
      for (const id of ids) queue.after(networkMs(), () => agents.get(id)?.poll(pollId));
    },
  };
  const host = new SimDeciderHost({ queue, store: new SimStore(), settings, audience, writeMs: () => 2 });
  for (let index = 0; index < options.agents; index += 1) {
    const load = { callsPerMs: options.callsPerSecond / options.agents / 1000, failing: options.failing };
    const agent = new PoissonAgent(String(index), settings.ruleHash, queue, chance, load, (report) => {
      reports += 1;
      queue.after(networkMs(), () => host.report(agent.identity, report));
    });
    agents.set(agent.identity.id, agent);
    host.agentUp(agent.identity);
    queue.after(chance.between(0, 1_000), () => agent.start());
  }
  const { then } = options;
  if (then !== undefined) {
    queue.after(then.atMs, () => {
      for (const agent of agents.values()) agent.setFailing(then.failing);
    });
  }
  for (let toMs = 1_000; toMs <= options.forMs && trippedMs === undefined; toMs += 1_000)
    queue.runUntil(toMs);
  return { trippedMs, message, polls, reports };
}
