import type { BreakerGate } from './breaker-gate.js';
import type { Bulkhead } from './bulkhead.js';
import type { CallRequest } from './call.js';
import type { CompiledPolicy } from './compiled-policy.js';
import type { EventBody } from './events.js';
import type { GuardTotals } from './guard-totals.js';
import type { Host } from './host.js';
import type { LastGoodCache } from './last-good-cache.js';
import type { RetryBudget } from './retry-budget.js';
import type { SharedTimer } from './shared-timer.js';

/** What the calls of one guard share. The fields a new generation replaces are read anew each time. */
export interface GuardShared {
  readonly host: Host;
  readonly timer: SharedTimer;
  readonly bulkhead: Bulkhead;
  readonly totals: GuardTotals;
  readonly policy: CompiledPolicy;
  /** Undefined = no bound but the number of attempts. */
  readonly budget: RetryBudget | undefined;
  readonly cache: LastGoodCache<unknown> | undefined;
  /** Undefined = no breaker for this call. */
  gateFor(request: CallRequest, nowMs: number): BreakerGate | undefined;
  emit(event: EventBody): void;
  /** A function of a user or an adapter threw. */
  callbackFailed(callback: string, error: unknown): void;
}
