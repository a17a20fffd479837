import { AsyncResource } from 'node:async_hooks';

/**
 * The task as it is now, bound to the async context of its caller. Timers and other calls that end start queued and
 * repeated attempts: without this their spans, their logs and what they inherit would be those of another request.
 */
export function inCallersContext<A extends unknown[], R>(task: (...given: A) => R): (...given: A) => R {
  // Nobody hears of its end, so that nothing need be registered for collection.
  const resource = new AsyncResource('BULWARK_CALL', { requireManualDestroy: true });
  return (...given) => resource.runInAsyncScope(task, undefined, ...given);
}
