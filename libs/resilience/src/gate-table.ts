import { BreakerGate, type GateListener } from './breaker-gate.js';
import type { BreakerSettings } from './settings.js';

export interface GateTableOptions {
  readonly settings: BreakerSettings;
  readonly random: () => number;
  readonly listener: GateListener;
  /** Most keys held. */
  readonly maxKeys: number;
  /** A key that was not called for so long, closed and without a live verdict, may be forgotten when room is needed. */
  readonly idleMs: number;
}

/** How often a full table is searched for idle keys: the search looks at all of them. */
const SWEEP_EVERY_MS = 1000;

/** The breaker gates of one policy, by key, bounded. */
export class GateTable {
  private readonly gates = new Map<string, BreakerGate>();
  private settings: BreakerSettings;
  private slot: number | undefined;
  private sweptMs = -Infinity;
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

  all(): Iterable<BreakerGate> {
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
    if (nowMs - this.sweptMs < SWEEP_EVERY_MS) return false;
    this.sweptMs = nowMs;
    for (const [key, gate] of this.gates) {
      if (gate.isIdle(nowMs, this.options.idleMs)) this.gates.delete(key);
    }
    this.last = undefined;
    return this.gates.size < this.options.maxKeys;
  }
}
