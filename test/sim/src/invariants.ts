import type { DeciderEffect, StoredVerdict } from '@bulwark/fleet';
import { type BreakerSettings, compareVersions, type VerdictVersion } from '@bulwark/resilience';
import type { SimDeciderHost } from './decider-host.js';
import type { SimAgent } from './sim-agent.js';
import type { FleetWatch, SimFleet } from './sim-fleet.js';
import { TruthLog } from './truth-log.js';

/** A decider trips nothing in its first full report interval. */
const CALM_MS = 1_000;
/** A verdict needs as long as a store write and a network delay to be everywhere. */
const SPREAD_MS = 30;

/** Looks at every step of a simulated fleet; collects what must never happen. */
export class Invariants implements FleetWatch {
  readonly violations: string[] = [];
  readonly truth: TruthLog;
  trips = 0;
  closes = 0;
  probesSinceOpen = 0;
  /** Something other than a failing probe may have cost a permit: then more than one probe in a cooldown is right. */
  permitsMayBeLost = false;
  /** The last close or release. */
  private freshFromMs = -Infinity;
  private written: VerdictVersion | undefined;
  private state: StoredVerdict['state'] = 'closed';
  private forcedUntilMs = -Infinity;
  private readonly heldBy = new Map<string, VerdictVersion>();

  constructor(
    private readonly fleet: () => SimFleet,
    settings: BreakerSettings,
  ) {
    this.truth = new TruthLog(settings);
  }

  effect(effect: DeciderEffect, host: SimDeciderHost): void {
    if (effect.kind === 'write') this.onWrite(effect.verdict, host);
    if (effect.kind === 'push') this.onPush(effect.verdict, host);
  }

  delivered(agent: SimAgent): void {
    const { nowMs } = this.fleet().queue;
    const version = agent.gate.verdictAt(nowMs)?.version;
    if (version !== undefined) {
      const id = `${agent.id}#${agent.incarnation}`;
      const former = this.heldBy.get(id);
      if (former !== undefined && compareVersions(version, former) < 0) {
        this.broken(`${agent.id} went back from ${text(former)} to ${text(version)}`);
      }
      this.heldBy.set(id, version);
    }
    this.onePermit();
  }

  ended(agent: SimAgent, ok: boolean): void {
    this.truth.add(agent.index, this.fleet().queue.nowMs, ok);
  }

  probed(): void {
    this.probesSinceOpen += 1;
  }

  private onWrite(verdict: StoredVerdict, host: SimDeciderHost): void {
    const { store, queue } = this.fleet();
    if (host.token !== store.token) return;
    const { written, state } = this;
    const { nowMs } = queue;
    if (written !== undefined && compareVersions(verdict.version, written) <= 0) {
      this.broken(`wrote ${text(verdict.version)} after ${text(written)}`);
    }
    this.written = verdict.version;
    const young = nowMs - host.startedMs < CALM_MS;
    if (state === 'closed' && verdict.state === 'open') {
      this.trips += 1;
      const judgedFromMs = Math.max(host.startedMs, this.freshFromMs);
      if (young) this.broken('tripped before a full report interval');
      const doubt = this.truth.doubtsTrip(verdict.reason, { nowMs, judgedFromMs }, (index) =>
        this.fleet().isHeard(index),
      );
      if (doubt !== undefined) this.broken(`${doubt} (${verdict.message})`);
    }
    if (state === 'recovering' && verdict.state === 'closed' && young) {
      this.broken('closed before a full report interval');
    }
    if (state !== verdict.state && nowMs < this.forcedUntilMs - SPREAD_MS) {
      this.broken(`moved from ${state} to ${verdict.state} while forced`);
    }
    this.onStateChange(verdict);
  }

  private onStateChange(verdict: StoredVerdict): void {
    if (verdict.reason === 'probe-failed' && this.state === 'half-open') {
      if (this.probesSinceOpen > 1 && !this.permitsMayBeLost) {
        this.broken(`${this.probesSinceOpen} probes in one cooldown`);
      }
    }
    if (verdict.state === 'open' && this.state !== 'open') this.probesSinceOpen = 0;
    if (verdict.state === 'closed') this.freshFromMs = this.fleet().queue.nowMs;
    if (verdict.state === 'closed' && this.state !== 'closed') this.closes += 1;
    this.state = verdict.state;
    this.forcedUntilMs =
      verdict.forced === undefined ? -Infinity : this.fleet().queue.nowMs + verdict.forced.remainingMs;
  }

  private onPush(verdict: StoredVerdict, host: SimDeciderHost): void {
    const { store } = this.fleet();
    if (host.token !== store.token || store.verdict === undefined) return;
    if (compareVersions(verdict.version, store.verdict.version) !== 0) {
      this.broken(`pushed ${text(verdict.version)}, stored is ${text(store.verdict.version)}`);
    }
  }

  /** At most one agent in the whole fleet can still probe. */
  private onePermit(): void {
    const holders = this.fleet().agents.filter((agent) => agent.holdsPermit);
    if (holders.length > 1) this.broken(`permits alive at ${holders.map(({ id }) => id).join(' and ')}`);
  }

  broken(what: string): void {
    if (this.violations.length < 20) {
      this.violations.push(`at ${Math.round(this.fleet().queue.nowMs)} ms: ${what}`);
    }
  }
}

function text({ era, token, epoch }: VerdictVersion): string {
  return `(${era}, ${token}, ${epoch})`;
}
