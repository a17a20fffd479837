import type { AgentSeries } from './agent-series.js';
import type { Amounts } from './bucket-ring.js';
import { CALM, type Judgement, type Quorum, quorumOf, seconds } from './judgement.js';
import { capOf, NO_CALL, ROUNDING } from './weigh.js';

/** Only outcomes this recent belong to a run: older failures say nothing of now. */
const RUN_MS = 500;

export interface ConsecutiveCase {
  readonly failures: number;
  readonly quorum: Quorum;
  /** Agents with an outcome lately. */
  readonly present: number;
  readonly nowMs: number;
  /** Newest success of any agent, by the decider's time. */
  readonly lastSuccessMs: number;
  readonly judgeFromMs: number;
}

let failuresOf = new Float64Array(64);
const amounts: Amounts = { successes: 0, failures: 0, third: 0 };

/**
 * "N consecutive failures" of a fleet, whose outcomes have no common order: at least N failures among the outcomes of the
 * last 500 ms, and no success from any agent since the first of them. An agent counts for the quorum when it failed in
 * that time.
 */
export function judgeConsecutive(series: readonly AgentSeries[], rule: ConsecutiveCase): Judgement {
  const { nowMs } = rule;
  const fromMs = Math.max(nowMs - RUN_MS, rule.lastSuccessMs, rule.judgeFromMs);
  reserve(series.length);
  let active = 0;
  let failing = 0;
  for (const one of series) {
    if (!one.agent.up) continue;
    one.judged.sum(RUN_MS, nowMs, amounts);
    const failures = failuresSince(one, fromMs, nowMs);
    if (failures < NO_CALL) {
      if (amounts.successes + amounts.failures >= NO_CALL) active += 1;
      continue;
    }
    active += 1;
    failuresOf[failing] = failures;
    failing += 1;
  }
  if (failing === 0) return CALM;
  const total = cappedSum(failing);
  if (total < rule.failures - ROUNDING) return CALM;
  const needed = quorumOf(rule.quorum, active, rule.present);
  const message =
    `${Math.round(total)} failures and no success in the last ${seconds(nowMs - fromMs)}, ` +
    `seen by ${failing} of ${active} agents (quorum ${needed}); rule: ${rule.failures} consecutive failures`;
  return { kind: failing >= needed ? 'trips' : 'localised', reason: 'consecutive-failures', message };
}

/** Of the run this agent is in. Exact when it began later; else by the buckets. */
function failuresSince(one: AgentSeries, fromMs: number, nowMs: number): number {
  if (one.runFailures === 0) return 0;
  if (one.runSinceMs >= fromMs) return one.runFailures;
  const sum: Amounts = { successes: 0, failures: 0, third: 0 };
  if (nowMs > fromMs) one.judged.sum(nowMs - fromMs, nowMs, sum);
  return Math.min(one.runFailures, sum.failures);
}

/** No agent counts for more than twice the median one of those that failed. */
function cappedSum(failing: number): number {
  const cap = capOf(failuresOf, failing);
  let total = 0;
  for (let index = 0; index < failing; index += 1) total += Math.min(cap, failuresOf[index] ?? 0);
  return total;
}

function reserve(length: number): void {
  if (length > failuresOf.length) failuresOf = new Float64Array(2 * length);
}
