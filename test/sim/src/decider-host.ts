import {
  type AgentIdentity,
  type AgentReport,
  createDecider,
  type DeciderEffect,
  type FleetDecider,
  type Forced,
  type Now,
  type StoredVerdict,
} from '@bulwark/fleet';
import type { BreakerSettings } from '@bulwark/resilience';
import type { EventQueue } from './event-queue.js';
import { KEY, POLICY } from './rules.js';

/** The store: one claim, one verdict. A write under an older claim is refused. */
export class SimStore {
  token = 0;
  verdict: StoredVerdict | undefined;

  claim(): number {
    this.token += 1;
    return this.token;
  }

  write(token: number, verdict: StoredVerdict): boolean {
    if (token !== this.token) return false;
    this.verdict = verdict;
    return true;
  }
}

/** Where a decider's words go. */
export interface Audience {
  push(verdict: StoredVerdict, ttlMs: number): void;
  poll(pollId: number, agents: readonly string[]): void;
  /** Everything it says, for those who check. */
  heard?(effect: DeciderEffect, host: SimDeciderHost): void;
}

export interface HostOptions {
  readonly queue: EventQueue;
  readonly store: SimStore;
  readonly settings: BreakerSettings;
  readonly audience: Audience;
  /** How long the store takes for a write. */
  readonly writeMs: () => number;
}

/** A replica that decides: the real decider, with simulated time, store and network. */
export class SimDeciderHost {
  readonly decider: FleetDecider;
  readonly startedMs: number;
  readonly token: number;
  private stopped = false;
  private wakeMs = Infinity;

  constructor(private readonly options: HostOptions) {
    const { store, queue } = options;
    this.startedMs = queue.nowMs;
    this.token = store.claim();
    const resume = store.verdict === undefined ? [] : [store.verdict];
    this.decider = createDecider({ era: 1, token: this.token, resume, now: this.now });
    this.run((at) => this.decider.setRule(POLICY, { ...POLICY, settings: options.settings }, at));
  }

  /** Killed: it says and hears nothing more. */
  stop(): void {
    this.stopped = true;
  }

  agentUp(agent: AgentIdentity): void {
    this.run((at) => this.decider.agentUp(agent, at));
  }

  agentDown(agent: { id: string; incarnation: string }): void {
    this.run((at) => this.decider.agentDown(agent, at));
  }

  report(agent: { id: string; incarnation: string }, report: AgentReport): void {
    this.run((at) => this.decider.report(agent, report, at));
  }

  force(forced: Forced | undefined): void {
    this.run((at) => this.decider.force(KEY, forced, at));
  }

  private get now(): Now {
    const { nowMs } = this.options.queue;
    return { ms: nowMs, unixMs: 1_700_000_000_000 + nowMs };
  }

  private run(step: (now: Now) => DeciderEffect[]): void {
    if (this.stopped) return;
    for (const effect of step(this.now)) this.carryOut(effect);
    this.sleep();
  }

  private carryOut(effect: DeciderEffect): void {
    const { audience, queue, store, writeMs } = this.options;
    audience.heard?.(effect, this);
    if (effect.kind === 'push') audience.push(effect.verdict, effect.ttlMs);
    else if (effect.kind === 'poll') audience.poll(effect.pollId, effect.agents);
    else if (effect.kind === 'write') {
      const { verdict } = effect;
      queue.after(writeMs(), () => {
        if (this.stopped) return;
        const ok = store.write(this.token, verdict);
        this.run((at) => this.decider.written(KEY, verdict.version, ok, at));
      });
    }
  }

  private sleep(): void {
    const { queue } = this.options;
    const wakeMs = this.decider.wakeAtMs();
    if (wakeMs === Infinity || wakeMs >= this.wakeMs) return;
    this.wakeMs = wakeMs;
    queue.after(wakeMs - queue.nowMs, () => {
      if (this.wakeMs !== wakeMs) return;
      this.wakeMs = Infinity;
      this.run((at) => this.decider.tick(at));
    });
  }
}
