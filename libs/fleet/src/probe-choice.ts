import { type AgentSeries, RECENT_MS } from './agent-series.js';

/** A call in this time, offered or rejected, is demand: agents report once a second, slow ones call every other second. */
const DEMAND_MS = 2_500;
/** A permit also lasts for the holder's next call to come: at least and at most this. */
const START_WAIT_MIN_MS = 250;
const START_WAIT_MAX_MS = 5_000;
/** Where three or more have demand, nobody holds more than one permit in so many. */
const ROTATION = 3;

/** Remembers who held the permits of a key. */
export class ProbeChoice {
  private readonly given = new Map<string, number>();
  private count = 0;

  /**
   * Who gets the next permit: of the agents with demand the one that waited longest for one. Agents that will probably
   * make a call within the permit's time come first, as long as they are of use: after as many fruitless permits in a row
   * as there are of them, all are asked.
   */
  next(
    series: readonly AgentSeries[],
    at: { readonly nowMs: number; readonly timeoutMs: number; readonly fruitless: number },
  ): AgentSeries | undefined {
    const wanting = series.filter((one) => hasDemand(one, at.nowMs));
    const brisk = wanting.filter((one) => callsIn(one, at.timeoutMs, at.nowMs) >= 1);
    const pool = brisk.length >= ROTATION && at.fruitless < brisk.length ? brisk : wanting;
    const rested = pool.filter((one) => !this.heldLately(one));
    const from = wanting.length >= ROTATION && rested.length > 0 ? rested : pool;
    let best: AgentSeries | undefined;
    for (const one of from) if (best === undefined || this.before(one, best)) best = one;
    return best;
  }

  noteGiven(agent: string): void {
    this.count += 1;
    this.given.delete(agent);
    this.given.set(agent, this.count);
    const [oldest] = this.given.keys();
    if (this.given.size > 1000 && oldest !== undefined) this.given.delete(oldest);
  }

  private heldLately(one: AgentSeries): boolean {
    const turn = this.given.get(one.agent.identity.id);
    return turn !== undefined && turn > this.count - (ROTATION - 1);
  }

  private before(one: AgentSeries, other: AgentSeries): boolean {
    const turn = this.given.get(one.agent.identity.id) ?? 0;
    const otherTurn = this.given.get(other.agent.identity.id) ?? 0;
    return turn !== otherTurn ? turn < otherTurn : one.demandMs > other.demandMs;
  }
}

export function hasDemand(one: AgentSeries, nowMs: number): boolean {
  return one.agent.up && nowMs - one.demandMs <= DEMAND_MS;
}

/** Long enough for the holder to have a call to make: twice the mean time between its calls, within bounds. */
export function startWaitMs(one: AgentSeries, nowMs: number): number {
  const calls = callsIn(one, RECENT_MS, nowMs);
  const gapMs = calls > 0 ? RECENT_MS / calls : RECENT_MS;
  return Math.round(Math.min(START_WAIT_MAX_MS, Math.max(START_WAIT_MIN_MS, 2 * gapMs)));
}

function callsIn(one: AgentSeries, ms: number, nowMs: number): number {
  const { successes, failures, third } = one.recentSum(nowMs);
  return ((successes + failures + third) * ms) / RECENT_MS;
}
