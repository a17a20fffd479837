import type { AgentReport, DeciderEffect, StoredVerdict } from '@bulwark/fleet';
import type { BreakerSettings } from '@bulwark/resilience';
import type { Chance } from './chance.js';
import { type Audience, SimDeciderHost, SimStore } from './decider-host.js';
import { Dependency } from './dependency.js';
import { EventQueue } from './event-queue.js';
import { SimAgent } from './sim-agent.js';

export interface FleetOptions {
  readonly settings: BreakerSettings;
  readonly agents: number;
  /** Of each agent. */
  readonly callsPerSecond: number;
  /** Agents with another rate. */
  readonly callsPerSecondOf?: ReadonlyMap<number, number>;
  readonly chance: Chance;
  /** 0..1 of the reports. */
  readonly lost: number;
  readonly doubled: number;
  readonly cancelled: number;
  /** Mean time of a call. */
  readonly latencyMs: number;
  /** Whether the dependency logs every call, or probes only. */
  readonly logCalls?: boolean;
}

/** Who checks what a fleet does. */
export interface FleetWatch {
  effect?(effect: DeciderEffect, host: SimDeciderHost): void;
  delivered?(agent: SimAgent): void;
  ended?(agent: SimAgent, ok: boolean): void;
  probed?(agent: SimAgent): void;
  offered?(agent: SimAgent, admitted: boolean): void;
}

/** After a lost report the next calm one brings everything. */
const LOSS_REPAIRED_MS = 1_200;

/** A fleet of agents with real gates, a network with delay and loss, a dependency, and one decider that can be replaced. */
export class SimFleet {
  readonly queue = new EventQueue();
  readonly store = new SimStore();
  readonly dependency: Dependency;
  readonly agents: SimAgent[] = [];
  host: SimDeciderHost;
  private posted: { readonly verdict: StoredVerdict; readonly atMs: number } | undefined;
  private readonly inboxMs: number[] = [];
  private readonly lostMs: number[] = [];

  constructor(
    private readonly options: FleetOptions,
    private readonly watch: FleetWatch = {},
  ) {
    const { chance, latencyMs, logCalls = false } = options;
    this.dependency = new Dependency(chance, latencyMs, logCalls);
    this.host = this.newHost();
    for (let index = 0; index < options.agents; index += 1) {
      const agent = this.newAgent(index);
      this.agents.push(agent);
      this.host.agentUp(agent.identity);
    }
  }

  /** A new decider takes the claim; the former one is dead, or does not know it yet. */
  replaceDecider(formerDies: boolean): void {
    if (formerDies) this.host.stop();
    this.host = this.newHost();
    for (const agent of this.agents) {
      if (!agent.alive || !agent.connected) continue;
      this.host.agentUp(agent.identity);
      agent.reconnected();
    }
  }

  disconnect(agent: SimAgent): void {
    agent.connected = false;
    this.host.agentDown({ id: agent.id, incarnation: String(agent.incarnation) });
  }

  /** Hears what is in force, and tells everything. */
  connect(agent: SimAgent): void {
    agent.connected = true;
    this.lostMs[agent.index] = this.queue.nowMs;
    this.host.agentUp(agent.identity);
    if (this.posted !== undefined) {
      const { verdict, atMs } = this.posted;
      const agedMs = this.queue.nowMs - atMs;
      const left = (ms: number): number => Math.max(0, ms - agedMs);
      const permit = verdict.permit && { ...verdict.permit, timeoutMs: left(verdict.permit.timeoutMs) };
      const forcedMs = left(verdict.forced?.remainingMs ?? 0);
      const forced =
        forcedMs > 0 && verdict.forced ? { ...verdict.forced, remainingMs: forcedMs } : undefined;
      this.deliver(agent, { ...verdict, permit, forced }, left(30_000));
    }
    agent.reconnected();
  }

  /** Whether the decider can know what this agent saw: it lives, is connected, and nothing it said was lost just now. */
  isHeard(index: number): boolean {
    const agent = this.agents[index];
    if (agent === undefined || !agent.alive || !agent.connected || agent.isPaused) return false;
    return this.queue.nowMs - (this.lostMs[index] ?? -Infinity) > LOSS_REPAIRED_MS;
  }

  private newHost(): SimDeciderHost {
    const { settings, chance } = this.options;
    const audience: Audience = {
      push: (verdict, ttlMs) => {
        this.posted = { verdict, atMs: this.queue.nowMs };
        for (const agent of this.agents) this.deliver(agent, verdict, ttlMs);
      },
      poll: (pollId, ids) => {
        for (const agent of this.agents) {
          if (!ids.includes(agent.id) || !agent.connected) continue;
          this.queue.after(this.networkMs(), () => agent.connected && agent.poll(pollId));
        }
      },
      heard: (effect, host) => this.watch.effect?.(effect, host),
    };
    const writeMs = (): number => chance.between(1, 5);
    return new SimDeciderHost({
      queue: this.queue,
      store: this.store,
      settings,
      audience,
      writeMs,
    });
  }

  private newAgent(index: number): SimAgent {
    const { settings, chance, cancelled, callsPerSecondOf } = this.options;
    const callsPerSecond = callsPerSecondOf?.get(index) ?? this.options.callsPerSecond;
    const { queue, dependency, watch } = this;
    const agent: SimAgent = new SimAgent({
      index,
      settings,
      queue,
      chance,
      dependency,
      callsPerSecond,
      cancelled,
      send: (report) => this.carry(agent, report),
      watch: {
        ended: (who, ok) => watch.ended?.(who, ok),
        probed: (who) => watch.probed?.(who),
        offered: (who, admitted) => watch.offered?.(who, admitted),
      },
    });
    return agent;
  }

  /** A report's way: late, sometimes lost, sometimes twice, in any order. */
  private carry(agent: SimAgent, report: AgentReport): void {
    const { chance, lost, doubled } = this.options;
    if (!agent.connected) return;
    if (chance.is(lost)) {
      this.lostMs[agent.index] = this.queue.nowMs;
      return;
    }
    const { host } = this;
    const from = { id: agent.id, incarnation: report.incarnation };
    const arrive = (): void => {
      this.queue.after(this.networkMs(), () => {
        if (host === this.host) host.report(from, report);
      });
    };
    arrive();
    if (chance.is(doubled)) arrive();
  }

  /** A verdict's way: a stream, so in order; a message to an agent that is not connected is gone. */
  private deliver(agent: SimAgent, verdict: StoredVerdict, ttlMs: number): void {
    if (!agent.connected || !agent.alive) return;
    const atMs = Math.max(this.inboxMs[agent.index] ?? 0, this.queue.nowMs + this.networkMs());
    this.inboxMs[agent.index] = atMs;
    this.queue.after(atMs - this.queue.nowMs, () => {
      if (!agent.connected) return;
      agent.receive(verdict, ttlMs);
      this.watch.delivered?.(agent);
    });
  }

  private networkMs(): number {
    return this.options.chance.between(1, 10);
  }
}
