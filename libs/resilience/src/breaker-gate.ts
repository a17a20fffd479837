import { FleetHold } from './fleet-hold.js';
import { type GateCounters, OutcomeRun, RuleTotals } from './gate-counters.js';
import { LocalBreaker, type LocalStateName, type LocalTransition } from './local-breaker.js';
import type { OutcomeKind } from './outcome.js';
import { Permit, type Refusal } from './permit.js';
import type { BreakerSettings } from './settings.js';
import { phaseOf } from './share-admission.js';
import { compareVersions, type FleetVerdict } from './verdict.js';

/**
 * What changed at a gate. After `failure`, `probe` and `local` an agent reports at once; the rest waits for its turn.
 * `probe`: the fleet's permit ended somehow. `local`: this process's breaker changed its state. `verdict`: a new one
 * is in force.
 */
export type GateChange = 'success' | 'failure' | 'ignored' | 'rejected' | 'probe' | 'local' | 'verdict';

/** Who hears of a gate. Neither may throw. */
export interface GateListener {
  changed(gate: BreakerGate, change: GateChange): void;
  transition(gate: BreakerGate, transition: LocalTransition): void;
}

export interface GateOptions {
  /** The breaker key's text. */
  readonly key: string;
  readonly settings: BreakerSettings;
  /** Uniform in [0, 1): jitter, and the phase while no slot is known. */
  readonly random: () => number;
  readonly listener?: GateListener;
  /** This agent's slot number at its replica; absent = unknown. */
  readonly slot?: number;
}

/** Rules whose totals are kept, so that a rule that comes back (a rollback) counts on and not from zero. */
const RULES_KEPT = 16;

/**
 * The breaker of one key as a call meets it: what a person forced, else the fleet's verdict while it lives,
 * else this process's own breaker (DESIGN §8, "Layers"). Pure and synchronous; time is a parameter.
 *
 * Fleet permits: at most `permitCalls` calls, begun before the permit's deadline, none after one that failed or ended
 * without an outcome.
 */
export class BreakerGate {
  readonly key: string;
  /** Counts up at every change: what an agent compares to see whether there is anything to report. */
  revision = 0;
  private settings: BreakerSettings;
  /** Infinity = no rule asks. */
  private slowerThanMs: number;
  private readonly local: LocalBreaker;
  private hold: FleetHold | undefined;
  private lapsed = false;
  private forced: 'open' | 'closed' | undefined;
  private forcedUntilMs = 0;
  private slot: number | undefined;
  private totals = new RuleTotals();
  private readonly run = new OutcomeRun();
  private otherRules: Map<string, RuleTotals> | undefined;
  private readonly random: () => number;
  private readonly listener: GateListener | undefined;
  private usedMs = 0;

  constructor(options: GateOptions) {
    this.key = options.key;
    this.settings = options.settings;
    this.slowerThanMs = options.settings.trip.slowRate?.slowerThanMs ?? Infinity;
    this.random = options.random;
    this.listener = options.listener;
    this.slot = options.slot;
    this.local = new LocalBreaker(
      options.settings,
      () => this.phase(this.local.epoch),
      (transition) => {
        this.touch('local');
        this.listener?.transition(this, transition);
      },
    );
  }

  /** Claims the right to make one attempt, or says why not. Must be completed or released. */
  admit(nowMs: number): Permit | Refusal {
    this.usedMs = nowMs;
    const answer = this.decide(nowMs);
    if (!(answer instanceof Permit)) {
      this.totals.rejected += 1;
      this.touch('rejected');
    }
    return answer;
  }

  /**
   * For a call that nothing but this process's own closed breaker has a say in: the epoch it begins in. Nothing is
   * claimed, so nothing is to be given back; `succeeded` or `ended` must be called once if the call is made.
   * 0 = ask `admit`.
   */
  passage(nowMs: number): number {
    if (this.forced !== undefined || (this.hold !== undefined && !this.hold.closed)) return 0;
    const epoch = this.local.closedEpoch;
    if (epoch !== 0) this.usedMs = nowMs;
    return epoch;
  }

  /** A call that began by `passage` ended well, and nobody timed it. Failures are completed by a permit. */
  succeeded(epoch: number, nowMs: number): void {
    this.totals.successes += 1;
    this.run.succeeded(nowMs);
    if (this.passage(nowMs) !== 0 || this.localDecides(nowMs)) this.local.succeed(epoch, nowMs);
    this.touch('success');
  }

  /** The same for one that was neutral, or whose time was taken. */
  ended(
    epoch: number,
    { kind, durationMs }: { readonly kind: 'success' | 'ignored'; readonly durationMs: number },
    nowMs: number,
  ): void {
    const slow = this.isSlow(durationMs);
    this.totals.count(kind, slow);
    if (kind === 'success') this.run.succeeded(nowMs);
    if (kind === 'success' && this.localDecides(nowMs)) this.local.count(epoch, false, slow, nowMs);
    this.touch(kind);
  }

  /** Whether an attempt would certainly be refused now. Claims and counts nothing. */
  wouldRefuse(nowMs: number): boolean {
    const forced = this.forcedAt(nowMs);
    if (forced !== undefined) return forced === 'open';
    const hold = this.holdAt(nowMs);
    return hold === undefined ? this.local.wouldRefuse(nowMs) : hold.wouldRefuse(nowMs);
  }

  /** Whether the permit would still be given: looked at again when a call leaves the bulkhead's queue. */
  isCurrent(permit: Permit, nowMs: number): boolean {
    const forced = this.forcedAt(nowMs);
    if (forced !== undefined) return forced === 'closed';
    const hold = this.holdAt(nowMs);
    if (hold !== undefined) return hold.isCurrent(permit, nowMs);
    if (permit.source === 'forced') return !this.local.wouldRefuse(nowMs);
    return permit.verdict === undefined && this.local.isCurrent(permit, nowMs);
  }

  /** The attempt ended. A second end of the same permit is ignored. */
  complete(
    permit: Permit,
    end: { readonly kind: OutcomeKind; readonly durationMs: number },
    nowMs: number,
  ): void {
    if (permit.done) return;
    permit.done = true;
    const { kind } = end;
    const slow = this.isSlow(end.durationMs);
    this.count(kind, slow, nowMs);
    if (permit.source === 'fleet-probe' || permit.source === 'fleet-step') {
      if (permit.verdict === this.hold?.verdict) this.hold?.complete(permit, { kind, slow });
    } else if (permit.source !== 'forced' && this.localDecides(nowMs)) {
      this.local.complete(permit, { kind, slow }, nowMs);
    }
    this.touch(permit.source === 'fleet-probe' ? 'probe' : kind);
  }

  /** The attempt was never made: what it took is given back. */
  release(permit: Permit, nowMs: number): void {
    if (permit.done) return;
    permit.done = true;
    if (permit.source === 'fleet-probe' || permit.source === 'fleet-step') {
      if (permit.verdict === this.hold?.verdict) this.hold?.release(permit);
    } else if (permit.source !== 'forced' && this.localDecides(nowMs)) {
      this.local.release(permit);
    }
    if (permit.source === 'fleet-probe') this.touch('probe');
  }

  /** Counts an attempt that was made without a permit: shadow mode lets through what it would have refused. */
  observe(end: { readonly kind: OutcomeKind; readonly durationMs: number }, nowMs: number): void {
    this.count(end.kind, this.isSlow(end.durationMs), nowMs);
    this.touch(end.kind);
  }

  /** A verdict arrived. Older ones are dropped (false); an equal one only lives longer. */
  applyVerdict(verdict: FleetVerdict, nowMs: number): boolean {
    const held = this.hold;
    const order = held === undefined ? 1 : compareVersions(verdict.version, held.verdict.version);
    if (order < 0) return false;
    this.lapseAt(nowMs);
    if (held !== undefined && order === 0) {
      held.untilMs = Math.max(held.untilMs, nowMs + verdict.ttlMs);
      this.lapsed = nowMs >= held.untilMs;
      return true;
    }
    const phase = this.phase(verdict.version.epoch);
    this.hold = new FleetHold(verdict, nowMs + verdict.ttlMs, { phase, nowMs });
    this.lapsed = false;
    this.forced = verdict.forced;
    this.forcedUntilMs = verdict.forced === undefined ? 0 : nowMs + verdict.forcedMs;
    if (verdict.state === 'closed' && held !== undefined && !held.closed) this.local.reset(nowMs);
    this.touch('verdict');
    return true;
  }

  /** The fleet gave the key up (its policy has no fleet breaker any more). What a person forced goes with it. */
  dropVerdict(): void {
    if (this.hold === undefined) return;
    this.hold = undefined;
    this.lapsed = false;
    this.forced = undefined;
    this.forcedUntilMs = 0;
    this.touch('verdict');
  }

  /** The slot number given at connect; from the next verdict on. */
  setPhase(slot: number | undefined): void {
    this.slot = slot;
  }

  /** New settings in place: counts go on under the same rule, an open breaker stays open. */
  update(settings: BreakerSettings): void {
    if (settings.ruleHash !== this.settings.ruleHash) this.changeRule(settings.ruleHash);
    this.settings = settings;
    this.slowerThanMs = settings.trip.slowRate?.slowerThanMs ?? Infinity;
    this.local.update(settings);
  }

  counters(nowMs: number): GateCounters {
    const { totals, run } = this;
    const hold = this.liveHold(nowMs);
    return {
      rule: this.settings.ruleHash,
      successes: totals.successes,
      failures: totals.failures,
      slow: totals.slow,
      ignored: totals.ignored,
      rejected: totals.rejected,
      runFailures: run.failures,
      runFirstFailureAgeMs: run.failures === 0 ? 0 : nowMs - run.firstFailureMs,
      successesSinceFailure: run.successes,
      // A success is dated by the ticker's next tick, so that it never looks older than it is.
      lastSuccessAgeMs: run.lastSuccessMs < 0 ? undefined : Math.max(0, nowMs - run.lastSuccessMs),
      localState: this.localState(nowMs),
      inForce: hold?.verdict.version,
      probe: this.hold?.probeReport(nowMs),
      step: hold?.stepReport(),
    };
  }

  /** This process's own breaker, whatever the fleet says. */
  localState(nowMs: number): LocalStateName {
    this.lapseAt(nowMs);
    return this.local.stateAt(nowMs);
  }

  /** What calls meet now, and who decided it. */
  stateAt(nowMs: number): { readonly state: LocalStateName; readonly by: 'forced' | 'fleet' | 'local' } {
    const forced = this.forcedAt(nowMs);
    if (forced !== undefined) return { state: forced, by: 'forced' };
    const hold = this.holdAt(nowMs);
    if (hold !== undefined) return { state: hold.verdict.state, by: 'fleet' };
    return { state: this.local.stateAt(nowMs), by: 'local' };
  }

  /** The verdict that is alive; undefined = none. */
  verdictAt(nowMs: number): FleetVerdict | undefined {
    return this.liveHold(nowMs)?.verdict;
  }

  /**
   * Nothing but counts would be lost if the gate were forgotten; with `halfOpen` also that the next call would have been
   * a probe.
   */
  isIdle(nowMs: number, idleMs: number, halfOpen = false): boolean {
    if (nowMs - this.usedMs < idleMs || this.forcedAt(nowMs) !== undefined) return false;
    if (this.liveHold(nowMs) !== undefined) return false;
    const state = this.localState(nowMs);
    return state === 'closed' || (halfOpen && state === 'half-open');
  }

  private decide(nowMs: number): Permit | Refusal {
    const forced = this.forcedAt(nowMs);
    if (forced === 'closed') return new Permit('forced', 0, Infinity, undefined);
    if (forced === 'open') return { reason: 'forced-open', retryAfterMs: this.forcedUntilMs - nowMs };
    const hold = this.holdAt(nowMs);
    return hold === undefined ? this.local.admit(nowMs) : hold.admit(nowMs);
  }

  private forcedAt(nowMs: number): 'open' | 'closed' | undefined {
    return this.forced !== undefined && nowMs < this.forcedUntilMs ? this.forced : undefined;
  }

  private liveHold(nowMs: number): FleetHold | undefined {
    return this.hold !== undefined && nowMs < this.hold.untilMs ? this.hold : undefined;
  }

  /** The hold that decides now: alive and not closed. */
  private holdAt(nowMs: number): FleetHold | undefined {
    const { hold } = this;
    if (hold === undefined || hold.closed) return undefined;
    if (nowMs < hold.untilMs) return hold;
    this.lapseAt(nowMs);
    return undefined;
  }

  private localDecides(nowMs: number): boolean {
    return this.forcedAt(nowMs) === undefined && this.holdAt(nowMs) === undefined;
  }

  /**
   * A verdict that was not closed ran out: the process goes on alone, half-open after a random part of the cooldown,
   * so that a fleet that lost its decider does not probe all at once.
   */
  private lapseAt(nowMs: number): void {
    const { hold } = this;
    if (hold === undefined || hold.closed || this.lapsed || nowMs < hold.untilMs) return;
    this.lapsed = true;
    const sinceMs = Math.max(hold.untilMs, Math.min(this.forcedUntilMs, nowMs));
    this.local.reopenUntil(sinceMs + this.random() * this.settings.cooldown.initialMs, nowMs);
  }

  private changeRule(rule: string): void {
    this.otherRules ??= new Map();
    this.otherRules.set(this.settings.ruleHash, this.totals);
    this.totals = this.otherRules.get(rule) ?? new RuleTotals();
    this.otherRules.delete(rule);
    const oldest = this.otherRules.keys().next();
    if (this.otherRules.size > RULES_KEPT && oldest.done !== true) this.otherRules.delete(oldest.value);
  }

  private count(kind: OutcomeKind, slow: boolean, nowMs: number): void {
    this.totals.count(kind, slow);
    this.run.count(kind, nowMs);
  }

  private isSlow(durationMs: number): boolean {
    return durationMs > this.slowerThanMs;
  }

  private phase(epoch: number): number {
    return this.slot === undefined ? this.random() : phaseOf(this.slot, epoch);
  }

  private touch(change: GateChange): void {
    this.revision += 1;
    this.listener?.changed(this, change);
  }
}
