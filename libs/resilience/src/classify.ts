import type { Judgement } from './call.js';
import type { OutcomeKind } from './outcome.js';
import type { FailureSettings } from './settings.js';

/** How one attempt ended, before anyone judged it. */
export type AttemptEnd =
  | { readonly how: 'answered'; readonly judgement: Judgement }
  | { readonly how: 'threw'; readonly judgement: Judgement }
  /** `full`: the attempt had all of its policy timeout, and was not cut short by the caller's own deadline. */
  | { readonly how: 'timed-out'; readonly full: boolean }
  /** It ran out of time that the caller itself had used up. */
  | { readonly how: 'held-up' }
  | { readonly how: 'cancelled' };

/**
 * What the end means for the caller:
 * - `ok`: a full answer;
 * - `refused`: the dependency works and says no (403, 404, INVALID_ARGUMENT), or the request was never sent: it reaches
 *   the caller as it is, and a remembered answer is no longer true;
 * - `unavailable`: no usable answer; a fallback may stand in;
 * - `cancelled`: nobody waits any more, or the caller itself was what took so long.
 */
export type Meaning = 'ok' | 'refused' | 'unavailable' | 'cancelled';

export interface Classified {
  /** For breaker, budget and objectives. */
  readonly kind: OutcomeKind;
  readonly meaning: Meaning;
  /** The dependency itself said that it was too much, though that counts as nobody's failure: 429, RESOURCE_EXHAUSTED. */
  readonly overload: true | undefined;
}

const OK: Classified = { kind: 'success', meaning: 'ok', overload: undefined };
const FAILED: Classified = { kind: 'failure', meaning: 'unavailable', overload: undefined };
const REFUSED: Classified = { kind: 'ignored', meaning: 'refused', overload: undefined };
/** No answer, and not the dependency's fault: a relayed rejection, a deadline of the caller's, a status not listed. */
const NEUTRAL: Classified = { kind: 'ignored', meaning: 'unavailable', overload: undefined };
const OVERLOAD: Classified = { kind: 'ignored', meaning: 'unavailable', overload: true };
const CANCELLED: Classified = { kind: 'ignored', meaning: 'cancelled', overload: undefined };

/** gRPC statuses that mean "try elsewhere or later", as opposed to "no". */
const GRPC_UNAVAILABLE: ReadonlySet<string> = new Set([
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'RESOURCE_EXHAUSTED',
  'INTERNAL',
  'UNKNOWN',
  'DATA_LOSS',
]);

/** The one classifier: breaker, retry, budget and fallback all use what it says. */
export function classify(end: AttemptEnd, failures: FailureSettings): Classified {
  switch (end.how) {
    case 'cancelled':
    case 'held-up':
      return CANCELLED;
    case 'timed-out':
      return end.full && failures.timeouts ? FAILED : NEUTRAL;
    case 'answered':
      return classifyAnswer(end.judgement, failures);
    case 'threw':
      return classifyJudgement(end.judgement, failures) ?? REFUSED;
  }
}

/** An attempt that was answered: what nearly all do. */
export function classifyAnswer(judgement: Judgement, failures: FailureSettings): Classified {
  return classifyJudgement(judgement, failures) ?? OK;
}

/** Undefined when the judgement names nothing. */
function classifyJudgement(judgement: Judgement, failures: FailureSettings): Classified | undefined {
  const { httpStatus, grpcStatus } = judgement;
  const failed =
    judgement.failure === true ||
    judgement.transport !== undefined ||
    (httpStatus !== undefined && failures.statuses.has(httpStatus)) ||
    (grpcStatus !== undefined && failures.grpc.has(grpcStatus));
  if (failed) return judgement.ignore === true ? NEUTRAL : FAILED;
  if (httpStatus !== undefined && httpStatus >= 400) {
    if (httpStatus === 429 && judgement.ignore !== true) return OVERLOAD;
    return httpUnavailable(httpStatus) ? NEUTRAL : REFUSED;
  }
  if (grpcStatus === 'CANCELLED') return CANCELLED;
  if (grpcStatus !== undefined && grpcStatus !== 'OK') {
    if (grpcStatus === 'RESOURCE_EXHAUSTED' && judgement.ignore !== true) return OVERLOAD;
    return GRPC_UNAVAILABLE.has(grpcStatus) ? NEUTRAL : REFUSED;
  }
  if (judgement.ignore === true) return REFUSED;
  return httpStatus === undefined && grpcStatus === undefined ? undefined : OK;
}

/** 408 and 429 say "not now"; the other 4xx say "no". */
function httpUnavailable(status: number): boolean {
  return status >= 500 || status === 408 || status === 429;
}
