import type { FleetState, StoredVerdict } from '@bulwark/fleet';
import { BreakerState, ForcedState, Verdict } from '@bulwark/protocol';

const STATES: Readonly<Record<FleetState, BreakerState>> = {
  closed: BreakerState.BREAKER_STATE_CLOSED,
  open: BreakerState.BREAKER_STATE_OPEN,
  'half-open': BreakerState.BREAKER_STATE_HALF_OPEN,
  recovering: BreakerState.BREAKER_STATE_RECOVERING,
};

/** A verdict as it is sent when it is fresh: the permit and what was forced have their whole time left. */
export function verdictMessage(verdict: StoredVerdict, ttlMs: number): Verdict {
  const { permit, forced } = verdict;
  return Verdict.create({
    key: { ...verdict.key },
    version: { ...verdict.version },
    state: STATES[verdict.state],
    share: verdict.share,
    permit: permit && {
      agent: permit.agent,
      incarnation: permit.incarnation,
      remainingMs: whole(permit.timeoutMs),
      calls: permit.calls,
    },
    ttlMs: whole(ttlMs),
    forced: forced === undefined ? ForcedState.FORCED_STATE_UNSPECIFIED : forcedMessage(forced.state),
    forcedRemainingMs: whole(forced?.remainingMs ?? 0),
    reason: verdict.reason,
    cooldownMs: verdict.state === 'open' ? whole(verdict.cooldownMs) : 0,
  });
}

export function forcedMessage(state: 'open' | 'closed'): ForcedState {
  return state === 'open' ? ForcedState.FORCED_STATE_OPEN : ForcedState.FORCED_STATE_CLOSED;
}

export function forcedFromMessage(state: ForcedState): 'open' | 'closed' | undefined {
  if (state === ForcedState.FORCED_STATE_OPEN) return 'open';
  return state === ForcedState.FORCED_STATE_CLOSED ? 'closed' : undefined;
}

function whole(ms: number): number {
  return Math.max(0, Math.round(ms));
}
