import type { BreakerGate, GateChange } from './breaker-gate.js';
import type { CallRequest } from './call.js';
import type { EngineEvent } from './events.js';
import type { Host } from './host.js';
import type { GuardSettings } from './settings.js';

export interface GuardOptions {
  readonly host: Host;
  readonly settings: GuardSettings;
  /** Makes the breaker key of a call from the breaker's `per`. Absent, or when it throws: "target" for every call. */
  readonly keyOf?: (request: CallRequest, per: readonly string[]) => string;
  /** Everything noteworthy, synchronously. May throw; then it is only counted. */
  readonly onEvent?: (event: EngineEvent) => void;
  /** A breaker key has something to report. Called for every attempt: keep it short. */
  readonly onChange?: (gate: BreakerGate, change: GateChange) => void;
  /** Breaker keys held, 1,000 by default. */
  readonly maxKeys?: number;
  /** Idle time after which a key may be forgotten when room is needed; 10 minutes by default. */
  readonly idleMs?: number;
  /** Answers remembered for last-good, 1,000 by default. */
  readonly maxLastGood?: number;
}
