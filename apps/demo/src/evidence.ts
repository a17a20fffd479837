import type { Breaker } from './breaker-api.js';
import type { Arrival } from './dependency.js';

/** One outage of one service under one policy, and what is asked of it. */
export interface Act {
  readonly policy: string;
  readonly service: string;
  readonly healthyMs: number;
  readonly outageMs: number;
  /** Most calls that may meet the dead dependency before all are protected; absent = not judged. */
  readonly wastedMax?: number;
  /** What as many separate breakers would waste, for comparison; absent = not said. */
  readonly separateWaste?: number;
  /** First failure → last agent open; absent = not judged. */
  readonly protectedWithinMs?: number;
  /** Shares of the recovery steps, 0..1. */
  readonly steps: readonly number[];
}

/** Everything measured, before it is judged. */
export interface Evidence {
  readonly brokenAtMs: number;
  readonly arrivals: readonly Arrival[];
  /** First opening of each agent after the first failure, on the machine's clock. */
  readonly openedAtMs: ReadonlyMap<string, number>;
  readonly breaker: Breaker;
  /** Calls offered under each epoch, all agents together. */
  readonly offered: ReadonlyMap<number, { share: number; state: string; offered: number; admitted: number }>;
}
