import type { BreakerKey } from '@bulwark/fleet';
import { compareVersions } from '@bulwark/resilience';
import { ForcedState, type Verdict } from '@bulwark/protocol';
import { keyId } from './breaker-name.js';

interface Posted {
  readonly verdict: Verdict;
  /** Monotonic milliseconds. */
  readonly ttlEndMs: number;
  readonly permitEndMs: number;
  readonly forcedEndMs: number;
}

const NEVER = { era: 0, token: 0, epoch: 0 };

/**
 * The newest verdict of each key that was sent to agents, for those that connect later. What is left of its times is
 * worked out when it is read; a renewal extends the time to live and nothing else.
 */
export class VerdictBoard {
  private readonly posted = new Map<string, Posted>();

  /** @returns the verdict to send on, with the times that are really left; undefined when a newer one is known */
  post(verdict: Verdict, nowMs: number): Verdict | undefined {
    if (verdict.key === undefined) return undefined;
    const id = keyId(verdict.key);
    const former = this.posted.get(id);
    const order =
      former === undefined ? 1 : compareVersions(verdict.version ?? NEVER, former.verdict.version ?? NEVER);
    if (order < 0) return undefined;
    const fresh: Posted = {
      verdict,
      ttlEndMs: nowMs + verdict.ttlMs,
      permitEndMs: nowMs + (verdict.permit?.remainingMs ?? 0),
      forcedEndMs: nowMs + verdict.forcedRemainingMs,
    };
    const entry = order > 0 || former === undefined ? fresh : renewed(former, fresh);
    this.posted.set(id, entry);
    return left(entry, nowMs);
  }

  remove(key: BreakerKey): void {
    this.posted.delete(keyId(key));
  }

  get(key: BreakerKey): Verdict | undefined {
    return this.posted.get(keyId(key))?.verdict;
  }

  /** Verdicts of these policies that are still alive, with the times that are left. */
  alive(nowMs: number, wanted: (key: BreakerKey) => boolean): Verdict[] {
    const found: Verdict[] = [];
    for (const [id, entry] of this.posted) {
      if (Math.max(entry.ttlEndMs, entry.forcedEndMs) <= nowMs) this.posted.delete(id);
      else if (entry.verdict.key !== undefined && wanted(entry.verdict.key)) found.push(left(entry, nowMs));
    }
    return found;
  }

  /** Whether this agent holds a probe permit that has not run out. */
  holdsPermit(agent: string, nowMs: number): boolean {
    for (const { verdict, permitEndMs } of this.posted.values()) {
      if (verdict.permit?.agent === agent && permitEndMs > nowMs) return true;
    }
    return false;
  }
}

function renewed(former: Posted, fresh: Posted): Posted {
  return {
    verdict: fresh.verdict,
    ttlEndMs: Math.max(former.ttlEndMs, fresh.ttlEndMs),
    permitEndMs: Math.min(former.permitEndMs, fresh.permitEndMs),
    forcedEndMs: Math.min(former.forcedEndMs, fresh.forcedEndMs),
  };
}

function left(entry: Posted, nowMs: number): Verdict {
  const { verdict, ttlEndMs, permitEndMs, forcedEndMs } = entry;
  const rest = (endMs: number): number => Math.max(0, Math.round(endMs - nowMs));
  const forcedMs = rest(forcedEndMs);
  return {
    ...verdict,
    ttlMs: rest(ttlEndMs),
    permit: verdict.permit && { ...verdict.permit, remainingMs: rest(permitEndMs) },
    forced: forcedMs === 0 ? ForcedState.FORCED_STATE_UNSPECIFIED : verdict.forced,
    forcedRemainingMs: forcedMs,
  };
}
