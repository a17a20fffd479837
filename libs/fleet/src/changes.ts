import { type BreakerSettings, compareVersions } from '@bulwark/resilience';
import type { AgentSeries } from './agent-series.js';
import { cooldownOf, type HalfOpen, type Recovering } from './breaker-state.js';
import type { StoredVerdict } from './contract.js';
import { percent, seconds } from './judgement.js';
import type { KeySeries } from './key-series.js';
import { type ProbeChoice, startWaitMs } from './probe-choice.js';
import { judgeStep, stepTotals } from './step-rules.js';
import { judgeTrip } from './trip-rules.js';
import type { Change } from './verdict-record.js';

export type { Change } from './verdict-record.js';

/** What a look at a key needs. */
export interface Scene {
  readonly nowMs: number;
  readonly settings: BreakerSettings;
  readonly series: KeySeries;
  /** The verdict in force; undefined = there never was one: closed. */
  readonly record: StoredVerdict | undefined;
}

/** Longer than a verdict takes to its agent: after timeout + this nobody can begin the probe of a lost permit. */
export const PERMIT_SLACK_MS = 500;

/** Permits in a row without an outcome are given elsewhere at once; from the third on with a pause before each. */
const FRUITLESS_AT_ONCE = 3;
const FRUITLESS_WAIT_MS = 200;

export interface ProbesSoFar {
  /** Calls of this episode that succeeded. */
  readonly successes: number;
  /** Permits in a row that ended without an outcome. */
  readonly fruitless: number;
  /** The pause after fruitless ones is over. */
  readonly rested?: boolean;
  readonly why: string;
}

export function open(scene: Scene, reason: string, message: string): Change {
  const { settings, record } = scene;
  const trips = (record?.trips ?? 0) + 1;
  const cooldownMs = cooldownOf(settings.cooldown, trips);
  return {
    to: 'open',
    reason,
    message: `${message}; open for ${seconds(cooldownMs)}`,
    cooldownMs,
    trips,
    forced: undefined,
    begin: (nowMs) => ({ name: 'open', untilMs: nowMs + cooldownMs }),
  };
}

/** Closed, and a rule and the quorum hold. */
export function tripped(scene: Scene): Change | undefined {
  const { series, settings, nowMs } = scene;
  const { lastSuccessMs, judgeFromMs, observedFromMs } = series;
  const word = judgeTrip(series.all, {
    settings,
    nowMs,
    lastSuccessMs,
    judgeFromMs,
    observedFromMs,
    tellsLocalised: false,
  });
  return word.kind === 'trips' ? open(scene, word.reason, word.message) : undefined;
}

/** The cooldown is over, or the former permit has ended: the next one, or waiting for somebody with demand. */
export function probing(scene: Scene, choice: ProbeChoice, past: ProbesSoFar): Change {
  const { settings, nowMs } = scene;
  const { timeoutMs } = settings.probe;
  const { fruitless } = past;
  const rests = fruitless >= FRUITLESS_AT_ONCE && past.rested !== true;
  const holder = rests ? undefined : choice.next(scene.series.all, { nowMs, timeoutMs, fruitless });
  return holder === undefined
    ? waiting(past, rests ? FRUITLESS_WAIT_MS : 0)
    : permitted(scene, choice, { ...past, holder });
}

function waiting({ successes, fruitless, why }: ProbesSoFar, waitMs: number): Change {
  return {
    to: 'half-open',
    reason: 'waiting',
    message: `${why}; no probe permit is out`,
    forced: undefined,
    begin: (nowMs) => ({
      name: 'half-open',
      permit: undefined,
      successes,
      fruitless,
      notBeforeMs: nowMs + waitMs,
    }),
  };
}

function permitted(
  scene: Scene,
  choice: ProbeChoice,
  past: ProbesSoFar & { readonly holder: AgentSeries },
): Change {
  const { concurrent, successesToClose, timeoutMs } = scene.settings.probe;
  const { successes, fruitless, why } = past;
  const { id: agent, incarnation } = past.holder.agent.identity;
  choice.noteGiven(agent);
  // Never more calls than it takes to decide.
  const calls = Math.max(1, Math.min(concurrent, successesToClose - successes));
  // The attempt itself is cut at `probe.timeout` by the agent; the permit also covers the wait for a call to make.
  const lifeMs = timeoutMs + startWaitMs(past.holder, scene.nowMs);
  return {
    to: 'half-open',
    reason: 'probe-permit',
    message: `${why}; the probe permit for ${calls === 1 ? 'one call' : `${calls} calls`} went to ${agent}`,
    permit: { agent, incarnation, calls, timeoutMs: lifeMs },
    forced: undefined,
    begin: (nowMs) => ({
      name: 'half-open',
      permit: { agent, incarnation, calls, deadlineMs: nowMs + lifeMs + PERMIT_SLACK_MS },
      successes,
      fruitless,
      notBeforeMs: nowMs,
    }),
  };
}

/** What became of the probe; undefined = nothing yet. */
export function probed(scene: Scene, state: HalfOpen, choice: ProbeChoice): Change | undefined {
  const { permit } = state;
  if (permit === undefined) {
    if (scene.nowMs < state.notBeforeMs) return undefined;
    const { successes, fruitless } = state;
    const next = probing(scene, choice, { successes, fruitless, rested: true, why: 'there is demand' });
    return next.permit === undefined ? undefined : next;
  }
  const holder = scene.series.all.find(({ agent }) => agent.identity.id === permit.agent);
  const same = holder?.agent.identity.incarnation === permit.incarnation;
  const result = same ? resultOf(holder, scene) : undefined;
  if (result?.outcome === 'failure') {
    return open(scene, 'probe-failed', `the probe of ${permit.agent} failed`);
  }
  const successes = state.successes + (result?.outcome === 'success' ? result.calls : 0);
  if (successes >= scene.settings.probe.successesToClose) {
    return step(scene, 0, `${successes === 1 ? 'the probe' : `${successes} probes`} succeeded`);
  }
  if (result?.outcome === 'success' && result.calls >= permit.calls) {
    const why = `${successes} of ${scene.settings.probe.successesToClose} probes succeeded`;
    return probing(scene, choice, { successes, fruitless: 0, why });
  }
  const replaced = holder !== undefined && !same;
  if (result?.outcome !== 'none' && scene.nowMs < permit.deadlineMs && !replaced) return undefined;
  const why = `the permit of ${permit.agent} ended without an outcome`;
  return probing(scene, choice, { successes, fruitless: state.fruitless + 1, why });
}

/** The share of this step is judged: bad at any time, good when its time is over; undefined = it goes on. */
export function stepped(scene: Scene, state: Recovering): Change | undefined {
  const { settings, record, series, nowMs } = scene;
  if (record === undefined) return undefined;
  const totals = stepTotals(series.all, {
    version: record.version,
    fromMs: state.fromMs,
    lastSuccessMs: series.lastSuccessMs,
  });
  const over = nowMs >= state.endsMs;
  const word = judgeStep(settings, totals, over);
  const message = `step of ${percent(record.share, 1)}: ${word.message}`;
  if (word.kind === 'bad') return open(scene, 'step-failed', message);
  return over && word.kind === 'good' ? step(scene, state.step + 1, message) : undefined;
}

/** The next share, or closed after the last. */
function step(scene: Scene, index: number, message: string): Change {
  const share = scene.settings.recovery.steps[index];
  if (share === undefined || share >= 1) {
    const reason = index === 0 ? 'probe-succeeded' : 'recovered';
    const rest = { cooldownMs: 0, trips: 0, forced: undefined, restart: true };
    return { to: 'closed', reason, message, ...rest, begin: () => ({ name: 'closed' }) };
  }
  const { stepForMs } = scene.settings.recovery;
  return {
    to: 'recovering',
    reason: index === 0 ? 'probe-succeeded' : 'step-passed',
    message,
    share,
    step: index,
    forced: undefined,
    begin: (fromMs) => ({ name: 'recovering', step: index, fromMs, endsMs: fromMs + stepForMs }),
  };
}

/** Only the outcome of this very permit: what an earlier round left says nothing of this one. */
function resultOf(holder: AgentSeries, scene: Scene): AgentSeries['probe'] {
  const { probe } = holder;
  if (probe === undefined || scene.record === undefined) return undefined;
  return compareVersions(probe.version, scene.record.version) === 0 ? probe : undefined;
}
