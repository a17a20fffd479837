import type { BreakerState } from './breaker-state.js';
import { type Change, PERMIT_SLACK_MS } from './changes.js';
import type { Forced, Now, StoredVerdict } from './contract.js';

/** What a person wants of a key; `forced` undefined = nothing any more. */
export interface Wish {
  readonly forced: Forced | undefined;
  /** Monotonic; Infinity with nothing forced. */
  readonly untilMs: number;
}

export const NOTHING_FORCED: Wish = { forced: undefined, untilMs: Infinity };

/** The state of a stored verdict at the new decider. The former one's clock is not ours: times begin anew. */
export function resumedState(stored: StoredVerdict, nowMs: number): BreakerState {
  switch (stored.state) {
    case 'closed':
      return { name: 'closed' };
    case 'open':
      return { name: 'open', untilMs: nowMs + stored.cooldownMs };
    case 'half-open': {
      const waitMs = stored.permit === undefined ? 0 : stored.permit.timeoutMs + PERMIT_SLACK_MS;
      return {
        name: 'half-open',
        permit: undefined,
        successes: 0,
        notBeforeMs: nowMs + waitMs,
        fruitless: 0,
      };
    }
    case 'recovering':
      return { name: 'recovering', step: stored.step, fromMs: nowMs, endsMs: Infinity };
  }
}

/** What is left of a stored force. Across a restart only wall time tells how old the record is. */
export function resumedWish({ forced, writtenUnixMs }: StoredVerdict, now: Now): Wish {
  if (forced === undefined) return NOTHING_FORCED;
  const ageMs = Math.max(0, now.unixMs - writtenUnixMs);
  return { forced, untilMs: now.ms + Math.max(0, forced.remainingMs - ageMs) };
}

/** The same state under a new version, for a new decider; what is forced may have ended while nobody decided. */
export function takenOver(stored: StoredVerdict, same: Continuing, wish: Wish): Change {
  if (wish.forced !== undefined && wish.untilMs <= same.nowMs) return forcedTo(same, NOTHING_FORCED);
  const { reason, message } = stored;
  return { ...continued(same, wish), reason, message };
}

/** The same state under a new version, with or without what a person forces. */
export function forcedTo(same: Continuing, wish: Wish): Change {
  const { forced } = wish;
  // What happened while nobody could decide is not judged afterwards.
  if (forced === undefined) {
    const words = { reason: 'released', message: 'no longer forced' };
    return { ...continued(same, wish), ...words, restart: true };
  }
  const message = `forced ${forced.state} by ${forced.by}: ${forced.reason}`;
  return { ...continued(same, wish), reason: 'forced', message };
}

export interface Continuing {
  readonly state: BreakerState;
  readonly record: StoredVerdict | undefined;
  readonly stepForMs: number;
  readonly nowMs: number;
}

function continued(same: Continuing, { forced, untilMs }: Wish): Omit<Change, 'reason' | 'message'> {
  const { state, record, nowMs, stepForMs } = same;
  const leftMs = Math.round(untilMs - nowMs);
  return {
    to: state.name,
    share: record?.share ?? 0,
    step: record?.step ?? -1,
    forced: forced === undefined || leftMs <= 0 ? undefined : { ...forced, remainingMs: leftMs },
    begin: (atMs) => stateAgain(state, stepForMs, atMs),
  };
}

/** Under a new version a permit is void, and the counts of a step begin anew. */
function stateAgain(state: BreakerState, stepForMs: number, nowMs: number): BreakerState {
  switch (state.name) {
    case 'half-open':
      return { ...state, permit: undefined, notBeforeMs: state.permit?.deadlineMs ?? state.notBeforeMs };
    case 'recovering':
      return { ...state, fromMs: nowMs, endsMs: nowMs + stepForMs };
    default:
      return state;
  }
}
