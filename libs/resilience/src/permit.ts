import type { RejectionReason } from './outcome.js';
import type { FleetVerdict } from './verdict.js';

/**
 * Where a permit comes from, and so who hears of its end:
 * - `local`: this process's breaker, closed or recovering; `local-probe`: half-open;
 * - `fleet-probe`, `fleet-step`: the verdict's permit, its share;
 * - `forced`: a person let everything through.
 */
export type PermitSource = 'local' | 'local-probe' | 'fleet-probe' | 'fleet-step' | 'forced';

/**
 * The right to make one attempt. It is claimed synchronously and completed or released exactly once; whatever comes
 * later is ignored. It names the epoch it belongs to: its end never changes a newer one.
 */
export class Permit {
  /** Completed or released. Written by the gate only. */
  done = false;
  /** Ran into its deadline: its place was given away, and it cannot succeed any more. Written by the breaker only. */
  expired = false;

  constructor(
    readonly source: PermitSource,
    /** Of the local breaker; 0 for the fleet's. */
    readonly epoch: number,
    /** When it lapses by itself; Infinity = with its attempt. */
    readonly deadlineMs: number,
    /** The verdict it was given under; undefined for the local breaker's. */
    readonly verdict: FleetVerdict | undefined,
  ) {}

  get probe(): boolean {
    return this.source === 'local-probe' || this.source === 'fleet-probe';
  }
}

/** Why an attempt may not be made. */
export interface Refusal {
  readonly reason: RejectionReason;
  /** When a later try may be admitted; undefined = unknown. */
  readonly retryAfterMs: number | undefined;
}
