/**
 * The breaker of one key in one process. Closed lets calls pass, open refuses them.
 *
 *            trip                 cooldown over
 *   closed ────────▶ open ──────────────────────▶ half-open
 *     ▲ ▲             ▲ ▲      probe failed          │ │
 *     │ │             │ └────────────────────────────┘ │ probes succeeded
 *     │ │             │ step failed                     │
 *     │ └─────────────┼──────── (no steps) ─────────────┤
 *     └────────────── recovering ◀──────────────────────┘
 *        last step      └─▶ next step
 *
 * Nothing here waits: cooldowns and steps are compared with the time given. Each change of state, and each step,
 * is an epoch; an attempt's end is heard only in the epoch it was admitted in.
 */
import { assertNever } from './assert-never.js';
import type { OutcomeKind } from './outcome.js';
import { Permit, type Refusal } from './permit.js';
import type { BreakerSettings, TripSettings } from './settings.js';
import { ShareAdmission } from './share-admission.js';
import { TripCounter, type TripReason } from './trip-counter.js';

export type LocalStateName = 'closed' | 'open' | 'half-open' | 'recovering';

type State =
  | { readonly name: 'closed' }
  | { readonly name: 'open'; readonly untilMs: number }
  | {
      readonly name: 'half-open';
      /** Probes in flight that have not expired. */
      readonly probes: Permit[];
      /** Probes admitted and not given back, for `maxCalls`. */
      admitted: number;
      successes: number;
    }
  | {
      readonly name: 'recovering';
      readonly step: number;
      readonly endsMs: number;
      readonly admission: ShareAdmission;
      readonly counter: TripCounter;
      ended: number;
      lastFailed: boolean;
    };

/** Fixed: an edge that is not here is a defect. `half-open` and `closed` are also where a lapsed or closed fleet verdict leads. */
const LEGAL: Readonly<Record<LocalStateName, readonly LocalStateName[]>> = {
  closed: ['open'],
  open: ['half-open'],
  'half-open': ['open', 'recovering', 'closed'],
  recovering: ['recovering', 'open', 'closed'],
};

export type LocalReason =
  | TripReason
  | 'cooldown-over'
  | 'probe-failed'
  | 'probe-succeeded'
  | 'step-passed'
  | 'step-failed'
  | 'recovered'
  | 'fleet-closed'
  | 'fleet-silent';

export interface LocalTransition {
  readonly from: LocalStateName;
  readonly to: LocalStateName;
  readonly reason: LocalReason;
  readonly atMs: number;
  /** Of the new state. */
  readonly epoch: number;
  /** Cooldown of the open period that begins; 0 for other states. */
  readonly cooldownMs: number;
}

/** Calls of a step that are enough to judge it by. A rule's own minimum counts when it is smaller. */
const STEP_CALLS = 10;

export class LocalBreaker {
  private state: State;
  /** Of the present or last open period; a trip begins with the initial one. */
  private cooldownMs: number;
  private currentEpoch = 1;
  /** The present epoch while closed, else 0: calls of a closed breaker need no permit of their own. */
  closedEpoch = 1;
  /** Of the closed state; of the last one while not closed. */
  private counter: TripCounter;

  /** `phase` in [0, 1): where the shares of recovery begin. `heard` must not throw. */
  constructor(
    private settings: BreakerSettings,
    private readonly phase: () => number,
    private readonly heard: (transition: LocalTransition) => void,
  ) {
    this.counter = new TripCounter(settings.trip);
    this.state = { name: 'closed' };
    this.cooldownMs = settings.cooldown.initialMs;
  }

  get epoch(): number {
    return this.currentEpoch;
  }

  /** The state at this time; a cooldown that is over shows as half-open. */
  stateAt(nowMs: number): LocalStateName {
    this.letTimePass(nowMs);
    return this.state.name;
  }

  /** Claims a permit, or says why not. The check and the claim are one step. */
  admit(nowMs: number): Permit | Refusal {
    this.letTimePass(nowMs);
    const { state } = this;
    switch (state.name) {
      case 'closed':
        return new Permit('local', this.currentEpoch, Infinity, undefined);
      case 'open':
        return { reason: 'breaker-open', retryAfterMs: state.untilMs - nowMs };
      case 'half-open':
        return this.admitProbe(state, nowMs);
      case 'recovering':
        return state.admission.offer()
          ? new Permit('local', this.currentEpoch, Infinity, undefined)
          : { reason: 'breaker-recovering', retryAfterMs: undefined };
      default:
        return assertNever(state);
    }
  }

  /** Whether an attempt would certainly be refused now. Claims nothing. */
  wouldRefuse(nowMs: number): boolean {
    this.letTimePass(nowMs);
    if (this.state.name === 'open') return true;
    return this.state.name === 'half-open' && !this.hasProbe(this.state, nowMs);
  }

  /** The permit's epoch is the present one, and it has not lapsed. */
  isCurrent(permit: Permit, nowMs: number): boolean {
    this.letTimePass(nowMs);
    return permit.epoch === this.currentEpoch && !permit.expired && permit.deadlineMs > nowMs;
  }

  /** An attempt ended. Older epochs and neutral outcomes change nothing (a neutral probe frees its place). */
  complete(permit: Permit, outcome: { kind: OutcomeKind; slow: boolean }, nowMs: number): void {
    if (permit.epoch !== this.currentEpoch) return;
    if (outcome.kind === 'ignored') {
      if (this.state.name === 'half-open') this.release(permit);
      return;
    }
    const failed = outcome.kind === 'failure';
    const { state } = this;
    switch (state.name) {
      case 'closed':
        this.count(permit.epoch, failed, outcome.slow, nowMs);
        return;
      case 'open':
        return;
      case 'half-open':
        this.completeProbe(state, permit, { failed, nowMs });
        return;
      case 'recovering':
        this.completeInStep(state, { failed, slow: outcome.slow }, nowMs);
        return;
      default:
        assertNever(state);
    }
  }

  /** A call of that closed epoch ended well, and was not slow. */
  succeed(epoch: number, nowMs: number): void {
    if (epoch !== this.closedEpoch) return;
    const reason = this.counter.succeed(nowMs);
    if (reason !== undefined) this.open(reason, this.settings.cooldown.initialMs, nowMs);
  }

  /** A call of that closed epoch ended, and said something. */
  count(epoch: number, failed: boolean, slow: boolean, nowMs: number): void {
    if (epoch !== this.closedEpoch) return;
    const reason = this.counter.record(failed, slow, nowMs);
    if (reason !== undefined) this.open(reason, this.settings.cooldown.initialMs, nowMs);
  }

  /** The attempt was never made, or says nothing: what it took is free again, and no cooldown changes. */
  release(permit: Permit): void {
    if (permit.epoch !== this.currentEpoch) return;
    const { state } = this;
    if (state.name === 'recovering') state.admission.giveBack();
    if (state.name !== 'half-open' || permit.expired) return;
    const index = state.probes.indexOf(permit);
    if (index < 0) return;
    state.probes.splice(index, 1);
    state.admitted -= 1;
  }

  /** The fleet closed the breaker: closed and fresh here too, whatever it was. */
  reset(nowMs: number): void {
    this.counter = new TripCounter(this.settings.trip);
    this.become({ name: 'closed' }, 'fleet-closed', nowMs);
  }

  /** The fleet fell silent while it held the breaker: refuse until `untilMs`, then probe. */
  reopenUntil(untilMs: number, nowMs: number): void {
    this.cooldownMs = this.settings.cooldown.initialMs;
    this.become({ name: 'open', untilMs }, 'fleet-silent', nowMs);
  }

  /** New settings in place. With the same rule the counts go on; an open breaker stays open in any case. */
  update(settings: BreakerSettings): void {
    const sameRule = settings.ruleHash === this.settings.ruleHash;
    this.settings = settings;
    if (!sameRule && this.state.name === 'closed') {
      this.counter = new TripCounter(settings.trip);
    }
  }

  private letTimePass(nowMs: number): void {
    const { state } = this;
    if (state.name === 'open' && nowMs >= state.untilMs) this.becomeHalfOpen(nowMs);
    else if (state.name === 'recovering' && nowMs >= state.endsMs) this.passStep(state, nowMs);
  }

  private open(reason: LocalReason, cooldownMs: number, nowMs: number): void {
    this.cooldownMs = cooldownMs;
    this.go({ name: 'open', untilMs: nowMs + cooldownMs }, reason, nowMs);
  }

  private reopen(reason: LocalReason, nowMs: number): void {
    const { maxMs, factor } = this.settings.cooldown;
    this.open(reason, Math.min(maxMs, this.cooldownMs * factor), nowMs);
  }

  private close(reason: LocalReason, nowMs: number): void {
    this.counter = new TripCounter(this.settings.trip);
    this.go({ name: 'closed' }, reason, nowMs);
  }

  private becomeHalfOpen(nowMs: number): void {
    this.go({ name: 'half-open', probes: [], admitted: 0, successes: 0 }, 'cooldown-over', nowMs);
  }

  private becomeStep(step: number, reason: LocalReason, nowMs: number): void {
    const share = this.settings.recovery.steps[step];
    if (share === undefined || share >= 1) {
      this.close(step === 0 ? 'probe-succeeded' : 'recovered', nowMs);
      return;
    }
    const state: State = {
      name: 'recovering',
      step,
      endsMs: nowMs + this.settings.recovery.stepForMs,
      admission: new ShareAdmission(share, this.phase()),
      counter: new TripCounter(stepRules(this.settings.trip)),
      ended: 0,
      lastFailed: false,
    };
    this.go(state, reason, nowMs);
  }

  private hasProbe(state: State & { name: 'half-open' }, nowMs: number): boolean {
    const { concurrent, successesToClose, maxCalls } = this.settings.probe;
    for (let index = state.probes.length - 1; index >= 0; index -= 1) {
      const probe = state.probes[index];
      if (probe === undefined || probe.deadlineMs > nowMs) continue;
      probe.expired = true;
      state.probes.splice(index, 1);
      state.admitted -= 1;
    }
    const inFlight = state.probes.length;
    // Never more than it takes to decide.
    const wanted = Math.max(concurrent, successesToClose);
    return (
      inFlight < concurrent &&
      state.successes + inFlight < wanted &&
      (maxCalls === undefined || state.admitted < maxCalls)
    );
  }

  private admitProbe(state: State & { name: 'half-open' }, nowMs: number): Permit | Refusal {
    if (!this.hasProbe(state, nowMs)) return { reason: 'breaker-half-open', retryAfterMs: undefined };
    const deadlineMs = nowMs + this.settings.probe.timeoutMs;
    const permit = new Permit('local-probe', this.currentEpoch, deadlineMs, undefined);
    state.probes.push(permit);
    state.admitted += 1;
    return permit;
  }

  /** A failure counts even when the permit has lapsed: it ended in this epoch. A success then came too late. */
  private completeProbe(
    state: State & { name: 'half-open' },
    permit: Permit,
    end: { readonly failed: boolean; readonly nowMs: number },
  ): void {
    const index = state.probes.indexOf(permit);
    if (index >= 0) state.probes.splice(index, 1);
    if (end.failed) {
      this.reopen('probe-failed', end.nowMs);
      return;
    }
    if (index < 0) return;
    state.successes += 1;
    if (state.successes >= this.settings.probe.successesToClose) {
      this.becomeStep(0, 'probe-succeeded', end.nowMs);
    }
  }

  private completeInStep(
    state: State & { name: 'recovering' },
    outcome: { readonly failed: boolean; readonly slow: boolean },
    nowMs: number,
  ): void {
    state.ended += 1;
    state.lastFailed = outcome.failed;
    if (state.counter.record(outcome.failed, outcome.slow, nowMs) !== undefined)
      this.reopen('step-failed', nowMs);
    else if (nowMs >= state.endsMs) this.passStep(state, nowMs);
  }

  /** A step without enough calls goes on; so does one whose last call failed. */
  private passStep(state: State & { name: 'recovering' }, nowMs: number): void {
    if (state.lastFailed || state.ended < stepCalls(this.settings.trip)) return;
    this.becomeStep(state.step + 1, 'step-passed', nowMs);
  }

  private go(next: State, reason: LocalReason, nowMs: number): void {
    if (!LEGAL[this.state.name].includes(next.name)) {
      throw new Error(`illegal edge ${this.state.name} to ${next.name}`);
    }
    this.become(next, reason, nowMs);
  }

  private become(next: State, reason: LocalReason, nowMs: number): void {
    const from = this.state.name;
    this.state = next;
    this.currentEpoch += 1;
    this.closedEpoch = next.name === 'closed' ? this.currentEpoch : 0;
    this.heard({
      from,
      to: next.name,
      reason,
      atMs: nowMs,
      epoch: this.currentEpoch,
      cooldownMs: next.name === 'open' ? this.cooldownMs : 0,
    });
  }
}

/** Calls a step needs before it may pass: the smallest minimum among the rules, at most `STEP_CALLS`. */
function stepCalls(trip: TripSettings): number {
  return Math.min(
    STEP_CALLS,
    trip.failureRate?.minimumCalls ?? STEP_CALLS,
    trip.slowRate?.minimumCalls ?? STEP_CALLS,
    trip.consecutiveFailures ?? STEP_CALLS,
  );
}

/** The rules of a step: the breaker's own, with minimums a share of the traffic can reach. */
function stepRules(trip: TripSettings): TripSettings {
  const most = stepCalls(trip);
  const { failureRate, slowRate } = trip;
  return {
    ...trip,
    ...(failureRate && {
      failureRate: { ...failureRate, minimumCalls: Math.min(failureRate.minimumCalls, most) },
    }),
    ...(slowRate && { slowRate: { ...slowRate, minimumCalls: Math.min(slowRate.minimumCalls, most) } }),
  };
}
