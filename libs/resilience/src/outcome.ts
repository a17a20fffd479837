/**
 * How one attempt ended, for the dependency. `slow` is not a kind of its own: a slow success is a success with
 * a duration over the rule's threshold. A rejection is no outcome of the dependency and has no place here.
 */
export type OutcomeKind = 'success' | 'failure' | 'ignored';

/** Stable words, also used in headers (`Bulwark-Rejected`, `reason=`) and, with underscores, in telemetry. */
export type RejectionReason =
  | 'breaker-open'
  | 'breaker-half-open'
  | 'breaker-recovering'
  | 'forced-open'
  | 'bulkhead-full'
  | 'bulkhead-timeout'
  | 'retry-budget'
  | 'deadline'
  | 'drill';
