import { BreakerGate, type GateListener } from './breaker-gate.js';
import type { BreakerSettings } from './settings.js';

export interface GateTableOptions {
  readonly settings: BreakerSettings;
  readonly random: () => number;
  readonly listener: GateListener;
  /** Most keys held. */
  readonly maxKeys: number;
  /**
   * A key that was not called for so long is forgotten: closed, not forced, without a live verdict. One that waits half-open
   * for a probe that nobody makes is kept while there is room.
   */
  readonly idleMs: number;
}

/** Idle keys are looked for so many times in `idleMs`, whatever the table holds … */
const SWEEPS = 10;
/** … and so often in a full one. Each time looks at all keys. */
const SWEEP_FULL_EVERY_MS = 1000;

/**
 * The breaker gates of one policy, by key, bounded in number and in idle time. It has no timer: idle keys go when calls come
 * or the table is read, and without either nothing grows.
 */
export class GateTable {
  private readonly gates = new Map<string, BreakerGate>();
  private settings: BreakerSettings;
  private slot: number | undefined;
  private sweptFullMs = -Infinity;
  private sweepAtMs = -Infinity;
  /** The key asked for last: most tables have one that is asked for again and again. */
  private last: BreakerGate | undefined;

  constructor(private readonly options: GateTableOptions) {
    this.settings = options.settings;
  }

  get size(): number {
    return this.gates.size;
  }

  find(key: string): BreakerGate | undefined {
    return this.gates.get(key);
  }

  /** The key's gate, made when there is none; undefined when the table is full of keys in use. */
  obtain(key: string, nowMs: number): BreakerGate | undefined {
    if (nowMs >= this.sweepAtMs) this.sweep(nowMs);
    if (this.last?.key === key) return this.last;
    const held = this.gates.get(key);
    if (held !== undefined) {
      this.last = held;
      return held;
    }
    if (this.gates.size >= this.options.maxKeys && !this.makeRoom(nowMs)) return undefined;
    const { random, listener } = this.options;
    const { settings, slot } = this;
    const gate = new BreakerGate({ key, settings, random, listener, ...(slot !== undefined && { slot }) });
    this.gates.set(key, gate);
    return gate;
  }

  all(nowMs: number): Iterable<BreakerGate> {
    if (nowMs >= this.sweepAtMs) this.sweep(nowMs);
    return this.gates.values();
  }

  update(settings: BreakerSettings): void {
    this.settings = settings;
    for (const gate of this.gates.values()) gate.update(settings);
  }

  setPhase(slot: number | undefined): void {
    this.slot = slot;
    for (const gate of this.gates.values()) gate.setPhase(slot);
  }

  private makeRoom(nowMs: number): boolean {
    if (nowMs - this.sweptFullMs < SWEEP_FULL_EVERY_MS) return false;
    this.sweptFullMs = nowMs;
    this.sweep(nowMs, true);
    return this.gates.size < this.options.maxKeys;
  }

  private sweep(nowMs: number, full = false): void {
    const { idleMs } = this.options;
    this.sweepAtMs = nowMs + idleMs / SWEEPS;
    this.last = undefined;
    for (const [key, gate] of this.gates) {
      if (gate.isIdle(nowMs, idleMs, full)) this.gates.delete(key);
    }
  }
}
