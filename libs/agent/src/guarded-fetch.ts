import type { CallEnvironment } from './call-plan.js';
import { FetchCall, type GuardedInit } from './fetch-call.js';

export type { CallPlan, FetchGuard } from './call-plan.js';
export type { GuardedInit } from './fetch-call.js';

/**
 * `fetch` under the policies. A guard's refusal is an answer (503, 504) and not an error, so that code that looks at
 * statuses works unchanged; transport errors and the caller's own abort are thrown as fetch throws them.
 *
 * The promise resolves with the head of the answer; the call is judged at the body's end, and until then its attempt
 * is under way: the bulkhead's slot is held and the attempt's timeout runs. A body that breaks off or stalls is the
 * dependency's failure, and its stream errors. One that the caller cancels counts by its head. One that the caller leaves
 * unread (beyond 64 KiB, which are read ahead) is ended by the timeout, and counts for nothing.
 */
export async function guardedFetch(
  environment: CallEnvironment,
  input: string | URL | Request,
  init: GuardedInit = {},
): Promise<Response> {
  return new FetchCall(environment, input, init).run();
}
