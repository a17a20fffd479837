import {
  type BreakerSettings,
  compareVersions,
  type TripSettings,
  type VerdictVersion,
} from '@bulwark/resilience';
import type { AgentSeries } from './agent-series.js';
import type { StepCounts, StoredVerdict } from './contract.js';
import { percent } from './judgement.js';
import type { KeySeries } from './key-series.js';
import { wilsonLower } from './rate-rule.js';

/**
 * Ended calls that are enough to judge a step by; a rule's own minimum counts when it is smaller. Ten, because a step
 * admits a share only: the rule's minimum (for all the traffic) could keep a quiet fleet in its first step for hours.
 */
const STEP_CALLS = 10;
/** A policy without a failure rate is judged by this one in a step: half of the calls failing is no recovery. */
const STEP_RATIO = 0.5;
/** Before its time is over a step is called bad on stronger evidence only, since it is looked at many times. */
const EARLY_Z = 3;

export interface StepTotals extends StepCounts {
  /** Failures of agents that saw no success since, and no success anywhere after the first of them. */
  readonly runFailures: number;
}

export interface StepJudgement {
  readonly kind: 'bad' | 'good' | 'too-few';
  readonly message: string;
}

/** What the fleet did under this very verdict; counts of any other version are not of this step. */
export function stepTotals(
  series: readonly AgentSeries[],
  step: { readonly version: VerdictVersion; readonly fromMs: number; readonly lastSuccessMs: number },
): StepTotals {
  const totals = { offered: 0, admitted: 0, successes: 0, failures: 0, slow: 0, runFailures: 0 };
  const runFromMs = Math.max(step.fromMs, step.lastSuccessMs);
  for (const one of series) {
    if (one.step === undefined || compareVersions(one.step.version, step.version) !== 0) continue;
    const { counts } = one.step;
    totals.offered += counts.offered;
    totals.admitted += counts.admitted;
    totals.successes += counts.successes;
    totals.failures += counts.failures;
    totals.slow += counts.slow;
    if (one.runSinceMs >= runFromMs) totals.runFailures += Math.min(one.runFailures, counts.failures);
  }
  return totals;
}

/** `over`: the step's time has passed, so the plain rules decide; before that only a clear failure does. */
export function judgeStep(settings: BreakerSettings, totals: StepTotals, over: boolean): StepJudgement {
  const ended = totals.successes + totals.failures;
  const enough = stepCalls(settings.trip);
  const message =
    `${totals.admitted} of ${totals.offered} calls admitted (${percent(totals.admitted, totals.offered)}), ` +
    `${totals.failures} of ${ended} failed`;
  const { failureRate, slowRate, consecutiveFailures } = settings.trip;
  const reached = (bad: number, ratio: number): boolean =>
    over ? bad >= ratio * ended - 1e-9 : wilsonLower(bad, ended, EARLY_Z) > ratio;
  const bad =
    ended >= enough &&
    (reached(totals.failures, failureRate?.ratio ?? STEP_RATIO) ||
      (slowRate !== undefined && reached(totals.slow, slowRate.ratio)) ||
      (consecutiveFailures !== undefined && totals.runFailures >= Math.min(consecutiveFailures, enough)));
  if (bad) return { kind: 'bad', message };
  if (ended < enough) return { kind: 'too-few', message: `${message}; ${ended} of ${enough} calls needed` };
  return { kind: 'good', message };
}

/** Why a step whose time is over goes on. */
export function stepNote(
  scene: {
    readonly settings: BreakerSettings;
    readonly record: StoredVerdict | undefined;
    readonly series: KeySeries;
  },
  fromMs: number,
): string | undefined {
  const { settings, record, series } = scene;
  if (record === undefined) return undefined;
  const { version } = record;
  const totals = stepTotals(series.all, { version, fromMs, lastSuccessMs: series.lastSuccessMs });
  const word = judgeStep(settings, totals, true);
  return word.kind === 'too-few' ? `step extended: ${word.message}` : undefined;
}

function stepCalls(trip: TripSettings): number {
  return Math.min(
    STEP_CALLS,
    trip.failureRate?.minimumCalls ?? STEP_CALLS,
    trip.slowRate?.minimumCalls ?? STEP_CALLS,
    trip.consecutiveFailures ?? STEP_CALLS,
  );
}
