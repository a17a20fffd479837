import type { BreakerGate, GateChange } from './breaker-gate.js';
import type { CallRequest } from './call.js';
import type { EngineEvent } from './events.js';
import type { Host } from './host.js';
import type { GuardSettings } from './settings.js';

export interface GuardOptions {
  readonly host: Host;
  readonly settings: GuardSettings;
  /**
   * Makes the breaker key of a call from the breaker's `per`; not asked when that is `["target"]`. Absent, or when it
   * throws: "target" for every call.
   */
  readonly keyOf?: (request: CallRequest, per: readonly string[]) => string;
  /** Everything noteworthy, synchronously. May throw; then it is only counted. */
  readonly onEvent?: (event: EngineEvent) => void;
  /** A breaker key has something to report. Called for every attempt: keep it short. */
  readonly onChange?: (gate: BreakerGate, change: GateChange) => void;
  /** Breaker keys held, 1,000 by default. */
  readonly maxKeys?: number;
  /**
   * Time without a call after which a key is forgotten, counts and all, when it is closed, not forced and without a live
   * verdict; 10 minutes by default. It is looked for when calls come or keys are read, ten times in this time at most.
   */
  readonly idleMs?: number;
  /** Answers remembered for last-good, 1,000 by default. */
  readonly maxLastGood?: number;
}
