import type { Chance } from './chance.js';

export interface Answer {
  readonly ok: boolean;
  readonly latencyMs: number;
}

export interface LoggedCall {
  readonly atMs: number;
  readonly agent: number;
  readonly ok: boolean;
  readonly probe: boolean;
}

/** What the fleet calls. Its own log is the judge of wasted calls and probes. */
export class Dependency {
  /** 0..1. */
  failing = 0;
  /** Agents whose own way to it is broken. */
  readonly cutOff = new Set<number>();
  /** Oldest first. */
  readonly log: LoggedCall[] = [];

  constructor(
    private readonly chance: Chance,
    private readonly latencyMs: number,
    private readonly keepLog: boolean,
  ) {}

  call(agent: number, nowMs: number, probe: boolean): Answer {
    const ok = !this.cutOff.has(agent) && !this.chance.is(this.failing);
    if (this.keepLog || probe) this.log.push({ atMs: nowMs, agent, ok, probe });
    return { ok, latencyMs: this.latencyMs * (0.5 + this.chance.uniform()) };
  }
}
