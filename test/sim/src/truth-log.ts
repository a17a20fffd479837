import type { BreakerSettings } from '@bulwark/resilience';

interface Ended {
  readonly atMs: number;
  readonly agent: number;
  readonly ok: boolean;
}

/** How much later than in truth the decider may place an outcome: a network delay each way, and a poll's patience. */
const LATE_MS = 15;
const ASKED_MS = 75;
const RUN_MS = 500;
const KEPT_MS = 12_000;

/** Every outcome as it really was, to hold trips against. Tolerant by the delays of the simulated network, and no more. */
export class TruthLog {
  private outcomes: Ended[] = [];

  constructor(private readonly settings: BreakerSettings) {}

  add(agent: number, atMs: number, ok: boolean): void {
    this.outcomes.push({ agent, atMs, ok });
    if (this.outcomes.length > 50_000) this.forget(atMs);
  }

  /** A new start of an agent: the decider has forgotten the former one. */
  forgetAgent(index: number): void {
    this.outcomes = this.outcomes.filter(({ agent }) => agent !== index);
  }

  /** What is wrong with a trip of now, or undefined. `reachable`: whose successes the decider can have known. `judgedFromMs`:
   * nothing older was judged. */
  doubtsTrip(
    reason: string,
    at: { readonly nowMs: number; readonly judgedFromMs: number },
    reachable: (agent: number) => boolean,
  ): string | undefined {
    const { nowMs, judgedFromMs } = at;
    this.forget(nowMs);
    if (reason === 'consecutive-failures') return this.doubtsRun(nowMs, reachable);
    return this.doubtsRate(nowMs, judgedFromMs, reachable) ?? this.doubtsQuorum(nowMs, reachable);
  }

  private doubtsRun(nowMs: number, reachable: (agent: number) => boolean): string | undefined {
    const needed = this.settings.trip.consecutiveFailures ?? Infinity;
    let fromMs = nowMs - RUN_MS - ASKED_MS;
    for (const { atMs, agent, ok } of this.outcomes) {
      if (ok && reachable(agent) && atMs <= nowMs - ASKED_MS) fromMs = Math.max(fromMs, atMs - LATE_MS);
    }
    const failed = this.outcomes.filter(({ atMs, ok }) => !ok && atMs >= fromMs);
    if (failed.length < needed) return `tripped on ${failed.length} failures in a row, in truth`;
    return this.doubtsQuorum(nowMs, reachable);
  }

  private doubtsRate(
    nowMs: number,
    judgedFromMs: number,
    reachable: (agent: number) => boolean,
  ): string | undefined {
    const rule = this.settings.trip.failureRate;
    if (rule === undefined || !('ms' in rule.window)) return undefined;
    let most = 0;
    // Successes are told once a second and spread over it, so the window the decider saw may be a little shorter in truth.
    for (let windowMs = rule.window.ms; windowMs >= 250; windowMs *= 0.8) {
      const inside = this.outcomes.filter(
        ({ atMs }) => atMs >= Math.max(judgedFromMs, nowMs - windowMs - ASKED_MS),
      );
      if (inside.length < rule.minimumCalls / 2) continue;
      // No agent counts for more than twice the median, so the plain ratio may be that much lower.
      const heard = inside.filter(({ agent }) => reachable(agent));
      most = Math.max(
        most,
        ratioOfAgents(inside),
        ratioOfAgents(heard),
        inside.filter(({ ok }) => !ok).length / inside.length,
      );
    }
    return most >= rule.ratio - 0.1 ? undefined : `tripped at a true ratio of ${most.toFixed(2)}`;
  }

  private doubtsQuorum(nowMs: number, reachable: (agent: number) => boolean): string | undefined {
    const since = this.outcomes.filter(({ atMs }) => atMs >= nowMs - 10_000 - ASKED_MS);
    const all = new Set(since.filter(({ agent }) => reachable(agent)).map(({ agent }) => agent)).size;
    const failing = new Set(since.filter(({ ok }) => !ok).map(({ agent }) => agent)).size;
    const needed = Math.min(this.settings.quorum.instances, all);
    return failing >= needed ? undefined : `tripped with ${failing} agents that saw a failure`;
  }

  private forget(nowMs: number): void {
    const from = this.outcomes.findIndex(({ atMs }) => atMs >= nowMs - KEPT_MS);
    this.outcomes = from < 0 ? [] : this.outcomes.slice(from);
  }
}

/** The mean of the agents' own ratios: as if all had the same traffic. */
function ratioOfAgents(outcomes: readonly Ended[]): number {
  const calls = new Map<number, { all: number; bad: number }>();
  for (const { agent, ok } of outcomes) {
    const own = calls.get(agent) ?? { all: 0, bad: 0 };
    own.all += 1;
    if (!ok) own.bad += 1;
    calls.set(agent, own);
  }
  let sum = 0;
  for (const { all, bad } of calls.values()) sum += bad / all;
  return calls.size === 0 ? 0 : sum / calls.size;
}
