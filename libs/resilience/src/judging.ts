import type { CallAdapter, Judgement } from './call.js';
import type { GuardShared } from './guard-shared.js';

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
