import type { VerdictVersion } from '@bulwark/resilience';
import type { BreakerState } from './breaker-state.js';
import type { FleetState, Forced, Now, Permit, StoredVerdict } from './contract.js';

const TRANSITIONS_KEPT = 20;

/** What a change makes of the record; everything else stays as it was. */
export interface Change {
  readonly to: FleetState;
  readonly reason: string;
  readonly message: string;
  readonly share?: number;
  readonly step?: number;
  readonly permit?: Permit;
  readonly cooldownMs?: number;
  readonly trips?: number;
  readonly forced: Forced | undefined;
  /** The state here once it is stored: times begin to count then. */
  readonly begin: (nowMs: number) => BreakerState;
  /** What is judged begins anew once it is stored. */
  readonly restart?: boolean;
}

export function nextVerdict(
  key: StoredVerdict['key'],
  former: StoredVerdict | undefined,
  change: Change,
  at: { readonly version: VerdictVersion; readonly now: Now },
): StoredVerdict {
  const from = former?.state ?? 'closed';
  const share = change.share ?? 0;
  const moved = from !== change.to || (change.to === 'recovering' && share !== former?.share);
  const { unixMs } = at.now;
  const { to, reason, message } = change;
  const transition = { unixMs, from, to, reason, message, epoch: at.version.epoch, share };
  const transitions = former?.transitions ?? [];
  return {
    key,
    version: at.version,
    state: to,
    share,
    step: change.step ?? -1,
    permit: change.permit,
    forced: change.forced,
    reason,
    message,
    cooldownMs: change.cooldownMs ?? former?.cooldownMs ?? 0,
    trips: change.trips ?? former?.trips ?? 0,
    sinceUnixMs: from === to && former !== undefined ? former.sinceUnixMs : unixMs,
    writtenUnixMs: unixMs,
    transitions: moved ? [...transitions, transition].slice(-TRANSITIONS_KEPT) : transitions,
  };
}
