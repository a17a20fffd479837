import type { AgentSeries } from './agent-series.js';
import type { Amounts } from './bucket-ring.js';

/** What the fleet counts in one window. */
export interface Weighed {
  /** Successes and failures, no agent counting for more than twice the median one. */
  calls: number;
  bad: number;
  /** Bad ones as they were told, all of them: never fewer than `bad`, and a shorter window never has more. */
  told: number;
  /** Agents with an outcome in the window. */
  active: number;
  /** Of those, the ones whose own ratio reaches the rule's. */
  failing: number;
}

export interface WindowToWeigh {
  readonly ms: number;
  readonly nowMs: number;
  readonly bad: 'failures' | 'slow';
  /** 0..1: at or above it an agent counts as failing. */
  readonly ratio: number;
  /** With fewer failing agents than this, of so many active ones, `calls` and `bad` are of no interest and stay 0. */
  readonly leastFailing: (active: number) => number;
}

/** Shares of a call come from spreading; less than this is none. */
export const NO_CALL = 0.01;
/** Sums of fractions miss a whole number by less. */
export const ROUNDING = 1e-3;

let callsOf = new Float64Array(64);
let badOf = new Float64Array(64);
let sorted = new Float64Array(64);
const amounts: Amounts = { successes: 0, failures: 0, third: 0 };

/** Sums a window over the agents that are there. */
export function weigh(series: readonly AgentSeries[], window: WindowToWeigh): Weighed {
  const { ms, nowMs, bad, ratio } = window;
  reserve(series.length);
  let active = 0;
  let failing = 0;
  let told = 0;
  let [least, most] = [Infinity, 0];
  for (const one of series) {
    if (!one.agent.up) continue;
    one.judged.sum(ms, nowMs, amounts);
    const calls = amounts.successes + amounts.failures;
    if (calls < NO_CALL) continue;
    const badCalls = Math.min(calls, bad === 'failures' ? amounts.failures : amounts.third);
    if (badCalls >= ratio * calls - ROUNDING * Math.min(1, calls)) failing += 1;
    told += badCalls;
    least = Math.min(least, calls);
    most = Math.max(most, calls);
    callsOf[active] = calls;
    badOf[active] = badCalls;
    active += 1;
  }
  if (failing < window.leastFailing(active)) return { calls: 0, bad: 0, told, active, failing };
  // Twice the median is at least twice the least.
  const cap = most <= 2 * least ? Infinity : capOf(callsOf, active);
  return { ...cappedSums(active, cap), told, active, failing };
}

/** A lower cap is none: outcomes are whole, but one that is spread over a second leaves a fraction in a short window. */
const LEAST_CAP = 2;

/** The most an agent may count for: twice the median of these counts. Infinity when there are none. */
export function capOf(counts: Float64Array, length: number): number {
  if (length === 0) return Infinity;
  reserve(length);
  const view = sorted.subarray(0, length);
  view.set(counts.subarray(0, length));
  view.sort();
  const middle = length >> 1;
  const upper = view[middle] ?? 0;
  return Math.max(LEAST_CAP, length % 2 === 1 ? 2 * upper : upper + (view[middle - 1] ?? 0));
}

function cappedSums(active: number, cap: number): { calls: number; bad: number } {
  let calls = 0;
  let bad = 0;
  for (let index = 0; index < active; index += 1) {
    const own = callsOf[index] ?? 0;
    const weight = own > cap ? cap / own : 1;
    calls += weight * own;
    bad += weight * (badOf[index] ?? 0);
  }
  return { calls, bad };
}

function reserve(length: number): void {
  if (length <= callsOf.length) return;
  const size = 2 * length;
  callsOf = grown(callsOf, size);
  badOf = grown(badOf, size);
  sorted = grown(sorted, size);
}

function grown(former: Float64Array<ArrayBuffer>, size: number): Float64Array<ArrayBuffer> {
  const next = new Float64Array(size);
  next.set(former);
  return next;
}
