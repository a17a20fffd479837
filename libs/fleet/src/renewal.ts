import type { BreakerState } from './breaker-state.js';
import { PERMIT_SLACK_MS } from './changes.js';
import type { DeciderEffect, StoredVerdict } from './contract.js';

/** A verdict lives so long at an agent that hears nothing more, and is renewed three times in that time. */
const TTL_MS = 30_000;
const RENEW_MS = 10_000;

/** When a verdict is said again. One that only says "closed" is said for one time to live, then agents decide alone. */
export class Renewal {
  dueMs = Infinity;
  private untilMs = Infinity;

  /** A verdict is in force from now on. */
  begin(verdict: StoredVerdict, nowMs: number): void {
    const lasts = verdict.state !== 'closed' || verdict.forced !== undefined;
    this.untilMs = lasts ? Infinity : nowMs + TTL_MS;
    this.dueMs = nowMs;
  }

  /** The push of this moment, with what is left of the verdict's times. */
  push(
    verdict: StoredVerdict,
    state: BreakerState,
    at: { readonly nowMs: number; readonly forcedUntilMs: number },
  ): DeciderEffect {
    const { nowMs, forcedUntilMs } = at;
    this.dueMs = nowMs + RENEW_MS <= this.untilMs ? nowMs + RENEW_MS : Infinity;
    const { permit, forced } = verdict;
    const deadlineMs = state.name === 'half-open' ? (state.permit?.deadlineMs ?? 0) : 0;
    const permitMs = Math.max(0, Math.round(deadlineMs - PERMIT_SLACK_MS - nowMs));
    const forcedMs = Math.max(1, Math.round(forcedUntilMs - nowMs));
    return {
      kind: 'push',
      verdict: {
        ...verdict,
        permit: permit && { ...permit, timeoutMs: permitMs },
        forced: forced && { ...forced, remainingMs: forcedMs },
      },
      ttlMs: TTL_MS,
    };
  }
}
