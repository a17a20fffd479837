import type { AgentIdentity, AgentReport, StoredVerdict } from '@bulwark/fleet';
import {
  BreakerGate,
  type BreakerSettings,
  type FleetVerdict,
  type GateChange,
  Permit,
} from '@bulwark/resilience';
import type { Chance } from './chance.js';
import type { Dependency } from './dependency.js';
import type { EventQueue } from './event-queue.js';
import { ReportTiming } from './report-timing.js';
import { KEY } from './rules.js';

export interface AgentOptions {
  readonly index: number;
  readonly settings: BreakerSettings;
  readonly queue: EventQueue;
  readonly chance: Chance;
  readonly dependency: Dependency;
  readonly callsPerSecond: number;
  /** 0..1: calls whose caller gives up, so that they end without an outcome. */
  readonly cancelled: number;
  readonly send: (report: AgentReport) => void;
  readonly watch: AgentWatch;
}

/** Who checks what agents do. */
export interface AgentWatch {
  ended(agent: SimAgent, ok: boolean): void;
  probed(agent: SimAgent): void;
  offered(agent: SimAgent, admitted: boolean): void;
}

/** Calls rejected after such a silence are told at once: there is somebody who could probe. */
const DEMAND_SILENCE_MS = 1_000;

/** One agent with the real breaker gate: calls at random times, reports, takes verdicts. Can be paused and killed. */
export class SimAgent {
  readonly index: number;
  incarnation = 0;
  alive = true;
  connected = true;
  gate: BreakerGate;
  private timing: ReportTiming;
  private paused = false;
  private readLate = false;
  private readonly backlog: (() => void)[] = [];
  private rejectedMs = -Infinity;

  constructor(private readonly options: AgentOptions) {
    this.index = options.index;
    this.gate = this.newGate();
    this.timing = this.newTiming();
    this.nextCall();
  }

  get id(): string {
    return `sim/caller/${this.index}`;
  }

  get identity(): AgentIdentity {
    const labels = { 'bulwark.dev/zone': `zone-${this.index % 3}` };
    const incarnation = String(this.incarnation);
    return { id: this.id, incarnation, namespace: 'sim', service: 'caller', labels };
  }

  /**
   * It could make a probe call now, by a permit that arrived in time. One that lay unread while the process was paused lives
   * longer than its giver thinks, since its time is counted from when it is read; what the process did not see, it cannot
   * know. Such a permit is void as soon as the next verdict, which lies unread behind it, is read too.
   */
  get holdsPermit(): boolean {
    const { nowMs } = this.options.queue;
    if (this.readLate) return false;
    const { state, by } = this.gate.stateAt(nowMs);
    return this.alive && by === 'fleet' && state === 'half-open' && !this.gate.wouldRefuse(nowMs);
  }

  get isPaused(): boolean {
    return this.paused;
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    for (const task of this.backlog.splice(0)) task();
  }

  kill(): void {
    this.alive = false;
  }

  /** A new start: nothing is remembered. */
  restart(): void {
    this.alive = true;
    this.paused = false;
    this.backlog.length = 0;
    this.incarnation += 1;
    this.gate = this.newGate();
    this.timing = this.newTiming();
    this.nextCall();
  }

  poll(pollId: number): void {
    this.awake(() => this.timing.now(pollId));
  }

  reconnected(): void {
    this.awake(() => {
      this.timing.disconnected();
      this.timing.now(0);
    });
  }

  /** A verdict arrived; a paused process reads it later. */
  receive(verdict: StoredVerdict, ttlMs: number): void {
    const late = this.paused;
    this.awake(() => {
      this.readLate = late;
      const { nowMs } = this.options.queue;
      const taken = this.toFleetVerdict(verdict, ttlMs);
      this.gate.applyVerdict(taken, nowMs);
    });
  }

  private toFleetVerdict(verdict: StoredVerdict, ttlMs: number): FleetVerdict {
    const { version, state, share, permit, forced, reason, cooldownMs } = verdict;
    const mine = permit?.agent === this.id && permit.incarnation === String(this.incarnation);
    return {
      version,
      state,
      share,
      permitCalls: mine ? permit.calls : 0,
      permitMs: mine ? permit.timeoutMs : 0,
      ttlMs,
      forced: forced?.state,
      forcedMs: forced?.remainingMs ?? 0,
      reason,
      cooldownMs,
    };
  }

  private nextCall(): void {
    const { incarnation } = this;
    const { queue, chance, callsPerSecond } = this.options;
    queue.after(chance.exponential(callsPerSecond / 1000), () => {
      if (!this.alive || incarnation !== this.incarnation) return;
      if (!this.paused) this.call();
      this.nextCall();
    });
  }

  private call(): void {
    const { queue, chance, dependency, watch, cancelled } = this.options;
    const { gate, incarnation } = this;
    const permit = gate.admit(queue.nowMs);
    watch.offered(this, permit instanceof Permit);
    if (!(permit instanceof Permit)) return;
    if (chance.is(cancelled)) {
      queue.after(chance.between(0, 5), () => this.awake(() => gate.release(permit, queue.nowMs)));
      return;
    }
    const probe = permit.source === 'fleet-probe';
    if (probe) watch.probed(this);
    const { ok, latencyMs } = dependency.call(this.index, queue.nowMs, probe);
    queue.after(latencyMs, () => {
      if (!this.alive || incarnation !== this.incarnation) return;
      this.awake(() => {
        // A paused process sees its calls end when it wakes, as a real one does.
        watch.ended(this, ok);
        gate.complete(permit, { kind: ok ? 'success' : 'failure', durationMs: latencyMs }, queue.nowMs);
      });
    });
  }

  private changed(change: GateChange): void {
    const { nowMs } = this.options.queue;
    const silentMs = nowMs - this.rejectedMs;
    if (change === 'rejected') this.rejectedMs = nowMs;
    const newDemand = change === 'rejected' && silentMs > DEMAND_SILENCE_MS;
    if (newDemand || change === 'failure' || change === 'probe' || change === 'local') this.timing.urgent();
    else this.timing.changed();
  }

  private awake(task: () => void): void {
    if (!this.alive) return;
    const { incarnation } = this;
    if (this.paused) this.backlog.push(() => incarnation === this.incarnation && task());
    else task();
  }

  private newGate(): BreakerGate {
    const { settings, chance } = this.options;
    return new BreakerGate({
      key: KEY.key,
      settings,
      random: chance.uniform,
      slot: this.index,
      listener: { changed: (_gate, change) => this.changed(change), transition: () => undefined },
    });
  }

  private newTiming(): ReportTiming {
    const { queue, chance, send } = this.options;
    const { incarnation } = this;
    return new ReportTiming(queue, chance.uniform, (parts) => {
      if (!this.alive || incarnation !== this.incarnation) return;
      this.awake(() => {
        const counts = this.gate.counters(queue.nowMs);
        const keys = [{ key: KEY, ...counts, localState: localOf(counts.localState) }];
        send({ incarnation: String(incarnation), ...parts, keys });
      });
    });
  }
}

function localOf(state: string): 'closed' | 'open' | 'half-open' | 'unknown' {
  return state === 'closed' || state === 'open' || state === 'half-open' ? state : 'unknown';
}
