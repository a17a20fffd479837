export { AttemptTimeoutError } from './attempt-run.js';
export { backoffMs, retryWaitMs } from './backoff.js';
export { BreakerGate, type GateChange, type GateListener, type GateOptions } from './breaker-gate.js';
export { Bulkhead, type BulkheadAnswer, type BulkheadLimits, type Waiter } from './bulkhead.js';
export type * from './call.js';
export { type AttemptEnd, classify, type Classified, type Meaning } from './classify.js';
export type { EngineEvent } from './events.js';
export type { GateCounters, ProbeReport, StepReport } from './gate-counters.js';
export { Guard } from './guard.js';
export type { GuardOptions } from './guard-options.js';
export type { GuardTotals } from './guard-totals.js';
export { type Cancel, type Host, TICK_MS, type Ticker } from './host.js';
export { type LastGood, LastGoodCache, type LastGoodSettings } from './last-good-cache.js';
export {
  LocalBreaker,
  type LocalReason,
  type LocalStateName,
  type LocalTransition,
} from './local-breaker.js';
export type * from './outcome.js';
export { Permit, type PermitSource, type Refusal } from './permit.js';
export { RetryBudget } from './retry-budget.js';
export type * from './settings.js';
export { phaseOf, ShareAdmission } from './share-admission.js';
export { SharedTimer } from './shared-timer.js';
export { TimerWheel, WheelEntry } from './timer-wheel.js';
export { compareVersions, type FleetVerdict, type VerdictVersion } from './verdict.js';
