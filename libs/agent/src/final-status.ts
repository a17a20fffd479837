import type { GuardSettings } from '@bulwark/resilience';

/**
 * Whether the caller gets an answer of this status whatever the policy says: then it can be passed on as it comes. Any other
 * waits for its judgement: a retry or a fallback may take its place. Without a policy every answer is final.
 */
export function isFinalStatus(status: number, settings: GuardSettings | undefined): boolean {
  if (settings === undefined) return true;
  return (
    status < 500 &&
    status !== 408 &&
    status !== 429 &&
    !settings.failures.statuses.has(status) &&
    settings.retry?.statuses.has(status) !== true
  );
}
