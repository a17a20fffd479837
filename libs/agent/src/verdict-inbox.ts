import { BreakerState, ForcedState, type BreakerKey, type Verdict } from '@bulwark/protocol';
import { compareVersions, type FleetVerdict } from '@bulwark/resilience';

/** Who this agent is, as a probe permit names it. */
export interface PermitHolder {
  /** "namespace/service/instance". */
  readonly id: string;
  readonly incarnation: string;
}

/** One text per breaker key; namespaces and policy names hold no "/". */
export function breakerKeyId(key: BreakerKey): string {
  return `${key.namespace}/${key.policy}/${key.key}`;
}

/**
 * The engine's form of a verdict, or undefined when the message is not a whole one. `lateMs`: how long ago its times were
 * taken; a permit that lay unread while this process was paused must not outlive the decider's deadline.
 */
export function toFleetVerdict(verdict: Verdict, holder: PermitHolder, lateMs = 0): FleetVerdict | undefined {
  const state = STATES.get(verdict.state);
  if (verdict.version === undefined || state === undefined) return undefined;
  const { permit } = verdict;
  // A permit is for one start of one agent: its restart must not probe a second time.
  const mine = permit?.agent === holder.id && permit.incarnation === holder.incarnation;
  const forced = FORCED.get(verdict.forced);
  if (forced !== undefined && verdict.forcedRemainingMs <= 0) return undefined;
  const left = (ms: number): number => Math.max(0, ms - lateMs);
  return {
    version: verdict.version,
    state,
    share: Math.min(1, Math.max(0, verdict.share)),
    permitCalls: mine ? permit.calls : 0,
    permitMs: mine ? left(permit.remainingMs) : 0,
    ttlMs: left(verdict.ttlMs),
    forced,
    forcedMs: forced === undefined ? 0 : left(verdict.forcedRemainingMs),
    reason: verdict.reason,
    cooldownMs: verdict.cooldownMs,
  };
}

const STATES = new Map<BreakerState, FleetVerdict['state']>([
  [BreakerState.BREAKER_STATE_CLOSED, 'closed'],
  [BreakerState.BREAKER_STATE_OPEN, 'open'],
  [BreakerState.BREAKER_STATE_HALF_OPEN, 'half-open'],
  [BreakerState.BREAKER_STATE_RECOVERING, 'recovering'],
]);

const FORCED = new Map<ForcedState, 'open' | 'closed'>([
  [ForcedState.FORCED_STATE_OPEN, 'open'],
  [ForcedState.FORCED_STATE_CLOSED, 'closed'],
]);

interface Kept {
  readonly verdict: FleetVerdict;
  readonly receivedAtMs: number;
}

/**
 * The newest verdict of every breaker key, whether this agent has called it or not: a gate made later must not
 * begin closed under an open verdict. Bounded; the one heard of longest ago goes first.
 */
export class VerdictInbox {
  readonly #kept = new Map<string, Kept>();
  readonly #max: number;

  constructor(max = 20_000) {
    this.#max = max;
  }

  /** False: it is older than the one kept, and must not reach a gate. */
  put(id: string, verdict: FleetVerdict, nowMs: number): boolean {
    const kept = this.#kept.get(id);
    if (kept !== undefined && compareVersions(verdict.version, kept.verdict.version) < 0) return false;
    this.#kept.delete(id);
    this.#kept.set(id, { verdict, receivedAtMs: nowMs });
    if (this.#kept.size > this.#max) {
      const [oldest] = this.#kept.keys();
      if (oldest !== undefined) this.#kept.delete(oldest);
    }
    return true;
  }

  /** The verdict with what is left of its times; undefined when there is none or all its times have ended. */
  get(id: string, nowMs: number): FleetVerdict | undefined {
    const kept = this.#kept.get(id);
    if (kept === undefined) return undefined;
    const elapsedMs = nowMs - kept.receivedAtMs;
    const left = (ms: number) => Math.max(0, ms - elapsedMs);
    const { verdict } = kept;
    const forcedMs = left(verdict.forcedMs);
    const remaining: FleetVerdict = {
      ...verdict,
      ttlMs: left(verdict.ttlMs),
      permitMs: left(verdict.permitMs),
      forced: forcedMs > 0 ? verdict.forced : undefined,
      forcedMs,
    };
    return remaining.ttlMs > 0 || forcedMs > 0 ? remaining : undefined;
  }

  /** Living verdicts of one policy, "namespace/name". */
  *of(policy: string, nowMs: number): Iterable<{ key: string; verdict: FleetVerdict }> {
    const prefix = `${policy}/`;
    for (const id of this.#kept.keys()) {
      if (!id.startsWith(prefix)) continue;
      const verdict = this.get(id, nowMs);
      if (verdict !== undefined) yield { key: id.slice(prefix.length), verdict };
    }
  }

  remove(id: string): void {
    this.#kept.delete(id);
  }
}
