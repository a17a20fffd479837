import type { BreakerSettings, VerdictVersion } from '@bulwark/resilience';
import { compareVersions } from '@bulwark/resilience';
import type { AgentEntry } from './agent-roster.js';
import { Asking } from './asking.js';
import { assertLegal, type BreakerState } from './breaker-state.js';
import { PERMIT_SLACK_MS, probed, probing, type Scene, stepped, tripped } from './changes.js';
import type { BreakerKey, DeciderEffect, Forced, KeyCounts, Now, StoredVerdict } from './contract.js';
import { KeySeries } from './key-series.js';
import { LookPace } from './look-pace.js';
import { ProbeChoice } from './probe-choice.js';
import { longestWindowMs } from './trip-rules.js';
import { type Change, nextVerdict, RENEW_MS, TTL_MS } from './verdict-record.js';

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
  private readonly asking = new Asking();
  private readonly choice = new ProbeChoice();
  private readonly pace = new LookPace();
  private pending: Pending | undefined;
  private forcedUntilMs = Infinity;
  private wish: { readonly forced: Forced | undefined; readonly untilMs: number } | undefined;
  private takeOver = false;
  private dirty = false;
  private lookedMs = -Infinity;
  private lookAgainMs = Infinity;
  private renewMs = Infinity;
  private renewUntilMs = Infinity;

  constructor(
    readonly key: BreakerKey,
    public settings: BreakerSettings | undefined,
    private readonly desk: Desk,
    /** Epochs of a key that was removed and came back go on. */
    private epoch: number,
  ) {
    const windowMs = settings === undefined ? 0 : longestWindowMs(settings);
    this.series = new KeySeries(settings?.ruleHash ?? '', windowMs);
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
    return this.asking.pollId !== undefined;
  }

  get isWriting(): boolean {
    return this.pending !== undefined;
  }

  scene(nowMs: number): Scene | undefined {
    const { settings, series, record } = this;
    return settings === undefined ? undefined : { nowMs, settings, series, record };
  }

  /** Goes on from a stored verdict. Its times begin anew, since the former decider's clock is not ours. */
  resume(stored: StoredVerdict, now: Now): void {
    this.record = stored;
    this.epoch = stored.version.epoch;
    const { era, token } = this.desk;
    this.quiet = compareVersions(stored.version, { era, token, epoch: Infinity }) > 0;
    this.takeOver = stored.state !== 'closed' || stored.forced !== undefined;
    this.state = resumed(stored, now.ms);
    this.forcedUntilMs = stored.forced === undefined ? Infinity : forcedEnd(stored, stored.forced, now);
    this.renewMs = now.ms;
    this.renewUntilMs = stored.state === 'closed' ? now.ms + TTL_MS : Infinity;
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
    if (added.bad || this.state.name !== 'closed') this.dirty = true;
    this.answered(agent.identity.id, turn);
  }

  /** An agent reported this key, or that it does not know it, or went away. */
  answered(agent: string, turn: Turn): void {
    this.asking.heard(agent);
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
    this.wish = { forced, untilMs: forced === undefined ? Infinity : turn.now.ms + forced.remainingMs };
    this.advance(turn);
  }

  /** The key is no more: nothing is due and no answer is awaited. */
  leave(): void {
    this.endAsking();
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
    if (this.takeOver) return this.again(nowMs, { forced: this.forced, untilMs: this.forcedUntilMs });
    if (this.wish !== undefined) return this.again(nowMs, this.wish);
    if (nowMs >= this.forcedUntilMs) return this.again(nowMs, { forced: undefined, untilMs: Infinity });
    if (nowMs >= this.renewMs) this.push(turn);
    this.lookAgainMs = Infinity;
    if (this.forced !== undefined || scene.settings.scope === 'Instance') return undefined;
    return this.look(scene, turn);
  }

  private look(scene: Scene, turn: Turn): Change | undefined {
    const { state } = this;
    switch (state.name) {
      case 'closed':
        return this.confirmed(scene, turn, tripped);
      case 'open': {
        if (scene.nowMs < state.untilMs) {
          this.lookAgainMs = state.untilMs;
          return undefined;
        }
        return probing(scene, this.choice, { successes: 0, fruitless: 0, why: 'the cooldown is over' });
      }
      case 'half-open': {
        const change = probed(scene, state, this.choice);
        if (state.permit !== undefined) this.lookAgainMs = state.permit.deadlineMs;
        else if (state.notBeforeMs > scene.nowMs) this.lookAgainMs = state.notBeforeMs;
        return change;
      }
      case 'recovering': {
        const over = scene.nowMs >= state.endsMs;
        if (over && this.lookedMs < state.endsMs) this.dirty = true;
        const change = this.confirmed(scene, turn, (at) => stepped(at, state));
        if (!over) this.lookAgainMs = Math.min(this.lookAgainMs, state.endsMs);
        return change;
      }
    }
  }

  /** A decision that counts in favour of nobody until those who may know better were asked. See asking.ts. */
  private confirmed(
    scene: Scene,
    turn: Turn,
    judge: (scene: Scene) => Change | undefined,
  ): Change | undefined {
    const { asking, desk } = this;
    const { nowMs } = scene;
    if (asking.pollId !== undefined) return this.afterAsking(scene, judge);
    if (!this.dirty) return undefined;
    const earliestMs = Math.max(this.pace.allowedMs(nowMs), desk.calmUntilMs, asking.allowedMs);
    if (nowMs < earliestMs) {
      this.lookAgainMs = earliestMs;
      return undefined;
    }
    this.looked(nowMs);
    const change = judge(scene);
    if (change === undefined) return undefined;
    const agents = asking.silent(scene.series.all, nowMs);
    if (agents.length === 0) return change;
    const pollId = desk.openPoll(this);
    asking.ask(pollId, agents, nowMs);
    this.lookAgainMs = asking.deadlineMs;
    turn.effects.push({ kind: 'poll', pollId, key: this.key, agents });
    return undefined;
  }

  private afterAsking(scene: Scene, judge: (scene: Scene) => Change | undefined): Change | undefined {
    const { asking } = this;
    if (!asking.isOver(scene.nowMs)) {
      this.lookAgainMs = asking.deadlineMs;
      return undefined;
    }
    this.endAsking();
    this.looked(scene.nowMs);
    const change = judge(scene);
    if (change === undefined) asking.refuted(scene.nowMs);
    return change;
  }

  private looked(nowMs: number): void {
    this.dirty = false;
    this.lookedMs = nowMs;
    this.pace.looked(nowMs);
  }

  /** The same state under a new version: another decider, or what a person wants. */
  private again(nowMs: number, wish: { forced: Forced | undefined; untilMs: number }): Change {
    const { record, state } = this;
    const { forced } = wish;
    const resumes = this.takeOver;
    const remaining = forced && { ...forced, remainingMs: Math.max(1, Math.round(wish.untilMs - nowMs)) };
    const words = resumes
      ? { reason: record?.reason ?? '', message: record?.message ?? '' }
      : forcedWords(forced);
    return {
      to: state.name,
      ...words,
      share: record?.share ?? 0,
      step: record?.step ?? -1,
      forced: wish.untilMs <= nowMs ? undefined : remaining,
      restart: !resumes && forced === undefined,
      begin: (atMs) => this.stateAgain(atMs),
    };
  }

  /** Under a new version a permit is void and the counts of a step begin anew. */
  private stateAgain(nowMs: number): BreakerState {
    const { state } = this;
    if (state.name === 'half-open') {
      const notBeforeMs = state.permit?.deadlineMs ?? state.notBeforeMs;
      return { ...state, permit: undefined, notBeforeMs };
    }
    if (state.name !== 'recovering') return state;
    const stepForMs = this.settings?.recovery.stepForMs ?? 0;
    return { ...state, fromMs: nowMs, endsMs: nowMs + stepForMs };
  }

  private propose(change: Change, turn: Turn): void {
    assertLegal(this.state.name, change.to);
    const { era, token } = this.desk;
    this.endAsking();
    this.epoch += 1;
    const version = { era, token, epoch: this.epoch };
    const verdict = nextVerdict(this.key, this.record, change, { version, now: turn.now });
    const forcedMs = change.forced?.remainingMs ?? Infinity;
    this.pending = { verdict, change, forcedUntilMs: turn.now.ms + forcedMs };
    this.takeOver = false;
    this.wish = undefined;
    turn.effects.push({ kind: 'write', verdict });
  }

  /** Stored: in force here and, by the push, at the agents. */
  private enter({ verdict, change, forcedUntilMs }: Pending, turn: Turn): void {
    const nowMs = turn.now.ms;
    this.record = verdict;
    this.state = change.begin(nowMs);
    this.forcedUntilMs = forcedUntilMs;
    if (change.restart === true) this.restart(nowMs);
    this.dirty = true;
    const isSaid = verdict.state !== 'closed' || verdict.forced !== undefined;
    this.renewUntilMs = isSaid ? Infinity : nowMs + TTL_MS;
    const { key } = this;
    turn.effects.push({ kind: 'notice', key, word: verdict.reason, message: verdict.message });
    this.push(turn);
  }

  private push(turn: Turn): void {
    const nowMs = turn.now.ms;
    const { record, state } = this;
    this.renewMs = nowMs + RENEW_MS <= this.renewUntilMs ? nowMs + RENEW_MS : Infinity;
    if (record === undefined) return;
    const permit = state.name === 'half-open' && record.permit !== undefined ? state.permit : undefined;
    const permitMs = permit === undefined ? 0 : permit.deadlineMs - PERMIT_SLACK_MS - nowMs;
    const verdict = {
      ...record,
      permit: record.permit && { ...record.permit, timeoutMs: Math.max(0, Math.round(permitMs)) },
      forced: record.forced && {
        ...record.forced,
        remainingMs: Math.max(1, Math.round(this.forcedUntilMs - nowMs)),
      },
    };
    turn.effects.push({ kind: 'push', verdict, ttlMs: TTL_MS });
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
    this.endAsking();
  }

  private endAsking(): void {
    if (this.asking.pollId === undefined) return;
    this.desk.closePoll(this.asking.pollId);
    this.asking.confirmed();
  }

  private nextDueMs(): number {
    if (this.settings === undefined || this.quiet || this.pending !== undefined) return Infinity;
    return Math.min(this.forcedUntilMs, this.renewMs, this.lookAgainMs);
  }
}

function resumed(stored: StoredVerdict, nowMs: number): BreakerState {
  switch (stored.state) {
    case 'closed':
      return { name: 'closed' };
    case 'open':
      return { name: 'open', untilMs: nowMs + stored.cooldownMs };
    case 'half-open': {
      const waitMs = stored.permit === undefined ? 0 : stored.permit.timeoutMs + PERMIT_SLACK_MS;
      const notBeforeMs = nowMs + waitMs;
      return { name: 'half-open', permit: undefined, successes: 0, notBeforeMs, fruitless: 0 };
    }
    case 'recovering':
      return { name: 'recovering', step: stored.step, fromMs: nowMs, endsMs: Infinity };
  }
}

/** Across a restart only wall time tells how old the record is. */
function forcedEnd(stored: StoredVerdict, forced: Forced, now: Now): number {
  const ageMs = Math.max(0, now.unixMs - stored.writtenUnixMs);
  return now.ms + Math.max(0, forced.remainingMs - ageMs);
}

function forcedWords(forced: Forced | undefined): { reason: string; message: string } {
  if (forced === undefined) return { reason: 'released', message: 'no longer forced' };
  const { state, by, reason } = forced;
  return { reason: 'forced', message: `forced ${state} by ${by}: ${reason}` };
}
