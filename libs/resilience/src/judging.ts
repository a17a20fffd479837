import type { CallAdapter, CallerHold, Judgement, Spent } from './call.js';
import type { GuardShared } from './guard-shared.js';
import type { SharedTimer } from './shared-timer.js';

/** Judges that throw say nothing: the answer passes as neutral, the error reaches the caller as it is. */
const NEUTRAL_ANSWER: Judgement = { ignore: true };
const UNKNOWN_ERROR: Judgement = {};

export function judgeAnswer<T>(shared: GuardShared, adapter: CallAdapter<T>, value: T): Judgement {
  try {
    return adapter.judge(value);
  } catch (error) {
    shared.callbackFailed('judge', error);
    return NEUTRAL_ANSWER;
  }
}

export function judgeThrown<T>(shared: GuardShared, adapter: CallAdapter<T>, thrown: unknown): Judgement {
  try {
    return adapter.judgeError(thrown);
  } catch (error) {
    shared.callbackFailed('judgeError', error);
    return UNKNOWN_ERROR;
  }
}

const NO_HOLD: CallerHold = { heldMs: 0, holding: false };
/** Part of an attempt; from here on its timeout says nothing about the dependency. */
const SUBSTANTIAL_HOLD = 0.25;

export function callerHold<T>(shared: GuardShared, adapter: CallAdapter<T>): CallerHold {
  try {
    return adapter.callerHold?.() ?? NO_HOLD;
  } catch (error) {
    shared.callbackFailed('callerHold', error);
    return NO_HOLD;
  }
}

/** A function that throws has said nothing: the safe side is that nothing is repeated, and fallbacks may serve. */
export function spentBy<T>(shared: GuardShared, adapter: CallAdapter<T>): Spent {
  if (adapter.spent === undefined) return 'nothing';
  try {
    return adapter.spent();
  } catch (error) {
    shared.callbackFailed('spent', error);
    return 'sent';
  }
}

/**
 * Whether this process itself stood still for a substantial part of an attempt that ran out of time: a request half
 * written or a handshake half made then says nothing about the dependency.
 */
export function wasStalled({ stalledMs }: SharedTimer, tookMs: number): boolean {
  return stalledMs > 0 && stalledMs >= tookMs * SUBSTANTIAL_HOLD;
}

/** Whether an attempt that used `tookMs` and ran out of time did so by its caller. */
export function isHeldUp({ heldMs, holding }: CallerHold, tookMs: number): boolean {
  return holding || (heldMs > 0 && heldMs >= tookMs * SUBSTANTIAL_HOLD);
}
