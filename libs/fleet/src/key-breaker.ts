import { type BreakerSettings, compareVersions, type VerdictVersion } from '@bulwark/resilience';
import type { AgentEntry } from './agent-roster.js';
import { assertLegal, type BreakerState } from './breaker-state.js';
import { type Change, probed, probing, type Scene, stepped, tripped } from './changes.js';
import { Confirmation, type Look } from './confirmation.js';
import type { BreakerKey, DeciderEffect, Forced, KeyCounts, Now, StoredVerdict } from './contract.js';
import { forcedTo, NOTHING_FORCED, resumedState, resumedWish, takenOver, type Wish } from './continuing.js';
import { KeySeries } from './key-series.js';
import { ProbeChoice } from './probe-choice.js';
import { Renewal } from './renewal.js';
import { isDecided } from './scope.js';
import { longestWindowMs } from './trip-rules.js';
import { nextVerdict } from './verdict-record.js';

/** What the keys of one decider share. */
export interface Desk {
  readonly era: number;
  readonly token: number;
  /** Nothing trips and no step ends earlier: one full report interval after the start. */
  readonly calmUntilMs: number;
  /** A new poll of this key. */
  openPoll(key: KeyBreaker): number;
  closePoll(pollId: number): void;
}

/** One call of the decider: when, and what it answers. */
export interface Turn {
  readonly now: Now;
  readonly effects: DeciderEffect[];
}

interface Pending {
  readonly verdict: StoredVerdict;
  readonly change: Change;
  readonly forcedUntilMs: number;
}

/** After a takeover, agents that call nothing say nothing for a while. */
const AWAITED_MS = 60_000;
const NOTHING: Look = { change: undefined, againMs: Infinity };

/**
 * The breaker of one key: what it is, what is being written, what a person wants. Every method ends with `dueMs` set to
 * when it must be looked at again.
 */
export class KeyBreaker {
  dueMs = Infinity;
  state: BreakerState = { name: 'closed' };
  record: StoredVerdict | undefined;
  readonly series: KeySeries;
  /** The store refused: this decider says nothing more of the key. */
  quiet = false;
  private readonly confirmation: Confirmation;
  private readonly choice = new ProbeChoice();
  private readonly renewal = new Renewal();
  private pending: Pending | undefined;
  /** What is forced ends; Infinity = nothing is. */
  private forcedUntilMs = Infinity;
  /** What a person wants and nobody has written yet. */
  private wish: Wish | undefined;
  private takesOver = false;
  private lookAgainMs = Infinity;
  private awaitedUntilMs = -Infinity;

  constructor(
    readonly key: BreakerKey,
    public settings: BreakerSettings | undefined,
    private readonly desk: Desk,
    /** Epochs of a key that was removed and came back go on. */
    private epoch: number,
  ) {
    const windowMs = settings === undefined ? 0 : longestWindowMs(settings);
    this.series = new KeySeries(settings?.ruleHash ?? '', windowMs);
    this.confirmation = new Confirmation((pollId) => desk.closePoll(pollId));
  }

  /** The newest epoch used. */
  get lastEpoch(): number {
    return this.epoch;
  }

  get hasVerdict(): boolean {
    return this.record !== undefined || this.pending !== undefined;
  }

  get forced(): Forced | undefined {
    return this.record?.forced;
  }

  get isAsking(): boolean {
    return this.confirmation.isAsking;
  }

  get isWriting(): boolean {
    return this.pending !== undefined;
  }

  /**
   * Somebody who is there, or was within the last minute, reports the key under one of these rules; or a verdict is in
   * force; or a stored one was just taken over and its agents may not have spoken yet.
   */
  isCalled(rules: ReadonlySet<string>, nowMs: number): boolean {
    if (this.state.name !== 'closed' || this.pending !== undefined || this.wish !== undefined) return true;
    if (this.forced !== undefined || nowMs < this.awaitedUntilMs) return true;
    return this.series.all.some(({ rule }) => rules.has(rule));
  }

  /** Undefined while no rule is known. */
  scene(nowMs: number): Scene | undefined {
    const { settings, series, record } = this;
    return settings === undefined ? undefined : { nowMs, settings, series, record };
  }

  /** Goes on from a stored verdict, as soon as the rule is known. */
  resume(stored: StoredVerdict, now: Now): void {
    this.record = stored;
    this.epoch = stored.version.epoch;
    const { era, token } = this.desk;
    this.quiet = compareVersions(stored.version, { era, token, epoch: Infinity }) > 0;
    this.takesOver = stored.state !== 'closed' || stored.forced !== undefined;
    this.state = resumedState(stored, now.ms);
    this.forcedUntilMs = resumedWish(stored, now).untilMs;
    this.renewal.begin(stored, now.ms);
    this.awaitedUntilMs = now.ms + AWAITED_MS;
    this.dueMs = now.ms;
  }

  setSettings(settings: BreakerSettings, turn: Turn): void {
    const sameRule = settings.ruleHash === this.settings?.ruleHash;
    this.settings = settings;
    if (!sameRule) this.restart(turn.now.ms);
    this.advance(turn);
  }

  report(
    agent: AgentEntry,
    counts: KeyCounts,
    at: { readonly spanMs: number; readonly sequence: number },
    turn: Turn,
  ): void {
    const added = this.series.take(agent, counts, { ...at, nowMs: turn.now.ms });
    if (added.bad || this.state.name !== 'closed') this.confirmation.noteNews();
    this.answered(agent.identity.id, turn);
  }

  /** An agent reported this key, or that it does not know it, or went away. */
  answered(agent: string, turn: Turn): void {
    this.confirmation.heard(agent);
    this.advance(turn);
  }

  written(version: VerdictVersion, ok: boolean, turn: Turn): void {
    const { pending } = this;
    if (pending === undefined || compareVersions(pending.verdict.version, version) !== 0) return;
    this.pending = undefined;
    if (ok) this.enter(pending, turn);
    else this.fallSilent(turn);
    this.advance(turn);
  }

  force(forced: Forced | undefined, turn: Turn): void {
    if (forced === undefined && this.forced === undefined && this.wish?.forced === undefined) return;
    this.wish = forced === undefined ? NOTHING_FORCED : { forced, untilMs: turn.now.ms + forced.remainingMs };
    this.advance(turn);
  }

  /** The key is no more: nothing is due and no answer is awaited. */
  leave(): void {
    this.confirmation.end();
    this.quiet = true;
    this.dueMs = Infinity;
  }

  /** Does what is due, and says when to come back. */
  advance(turn: Turn): void {
    const change = this.due(turn);
    if (change !== undefined) this.propose(change, turn);
    this.dueMs = this.nextDueMs();
  }

  private due(turn: Turn): Change | undefined {
    const nowMs = turn.now.ms;
    const scene = this.scene(nowMs);
    if (scene === undefined || this.quiet || this.pending !== undefined) return undefined;
    const continued = this.continuedDue(scene);
    if (continued !== undefined) return continued;
    if (nowMs >= this.renewal.dueMs) this.push(turn);
    const decides = this.forced === undefined && isDecided(scene.settings.scope);
    const look = decides ? this.look(scene, turn) : NOTHING;
    this.lookAgainMs = look.againMs;
    return look.change;
  }

  /** The same state under a new version: another decider begins, a person wants something, or what was forced ends. */
  private continuedDue({ nowMs, settings, record }: Scene): Change | undefined {
    const { state, wish, forcedUntilMs } = this;
    const same = { state, record, nowMs, stepForMs: settings.recovery.stepForMs };
    if (this.takesOver && record !== undefined) {
      return takenOver(record, same, { forced: record.forced, untilMs: forcedUntilMs });
    }
    if (wish !== undefined) return forcedTo(same, wish);
    return nowMs >= forcedUntilMs ? forcedTo(same, NOTHING_FORCED) : undefined;
  }

  private look(scene: Scene, turn: Turn): Look {
    const { state } = this;
    const { nowMs } = scene;
    switch (state.name) {
      case 'closed':
        return this.confirmed(scene, turn, tripped);
      case 'open': {
        if (nowMs < state.untilMs) return { change: undefined, againMs: state.untilMs };
        const past = { successes: 0, fruitless: 0, why: 'the cooldown is over' };
        return { change: probing(scene, this.choice, past), againMs: Infinity };
      }
      case 'half-open': {
        const change = probed(scene, state, this.choice);
        const waitsMs = state.notBeforeMs > nowMs ? state.notBeforeMs : Infinity;
        return { change, againMs: state.permit?.deadlineMs ?? waitsMs };
      }
      case 'recovering': {
        const isOver = nowMs >= state.endsMs;
        if (isOver) this.confirmation.noteDue(state.endsMs);
        const look = this.confirmed(scene, turn, (at) => stepped(at, state));
        return isOver ? look : { ...look, againMs: Math.min(look.againMs, state.endsMs) };
      }
    }
  }

  private confirmed(scene: Scene, turn: Turn, judge: (scene: Scene) => Change | undefined): Look {
    const { key, desk } = this;
    const ask = (agents: readonly string[]): number => {
      const pollId = desk.openPoll(this);
      turn.effects.push({ kind: 'poll', pollId, key, agents });
      return pollId;
    };
    return this.confirmation.look({ scene, judge, ask, fromMs: desk.calmUntilMs });
  }

  private propose(change: Change, turn: Turn): void {
    assertLegal(this.state.name, change.to);
    const { era, token } = this.desk;
    this.confirmation.end();
    this.epoch += 1;
    const version = { era, token, epoch: this.epoch };
    const verdict = nextVerdict(this.key, this.record, change, { version, now: turn.now });
    const forcedMs = change.forced?.remainingMs ?? Infinity;
    this.pending = { verdict, change, forcedUntilMs: turn.now.ms + forcedMs };
    // A wish that came while this decider took over is not fulfilled by that.
    if (!this.takesOver) this.wish = undefined;
    this.takesOver = false;
    turn.effects.push({ kind: 'write', verdict });
  }

  /** Stored: in force here and, by the push, at the agents. */
  private enter({ verdict, change, forcedUntilMs }: Pending, turn: Turn): void {
    const nowMs = turn.now.ms;
    this.record = verdict;
    this.state = change.begin(nowMs);
    this.forcedUntilMs = forcedUntilMs;
    if (change.restart === true) this.restart(nowMs);
    this.confirmation.noteNews();
    const { key } = this;
    turn.effects.push({ kind: 'notice', key, word: verdict.reason, message: verdict.message });
    this.renewal.begin(verdict, nowMs);
    this.push(turn);
  }

  private push(turn: Turn): void {
    const { record, state, renewal, forcedUntilMs } = this;
    if (record === undefined) return;
    turn.effects.push(renewal.push(record, state, { nowMs: turn.now.ms, forcedUntilMs }));
  }

  private fallSilent(turn: Turn): void {
    this.quiet = true;
    const message = 'the store refused a verdict: another decider has the claim, this one says no more';
    turn.effects.push({ kind: 'notice', key: this.key, word: 'write-refused', message });
  }

  private restart(nowMs: number): void {
    if (this.settings === undefined) return;
    const rule = this.settings.ruleHash;
    this.series.restart({ rule, windowMs: longestWindowMs(this.settings), nowMs });
    this.confirmation.end();
  }

  private nextDueMs(): number {
    if (this.settings === undefined || this.quiet || this.pending !== undefined) return Infinity;
    return Math.min(this.forcedUntilMs, this.renewal.dueMs, this.lookAgainMs);
  }
}
