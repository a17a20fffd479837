import type { DegradedMode, DegradedReason } from './call.js';
import type { LocalTransition } from './local-breaker.js';
import type { RejectionReason } from './outcome.js';
import type { FleetVerdict } from './verdict.js';

/** What the engine has to tell. Adapters log, measure and trace it; the engine itself does none of that. */
export type EngineEvent = { readonly policy: string } & (
  | { readonly type: 'breaker-transition'; readonly key: string; readonly transition: LocalTransition }
  | { readonly type: 'verdict'; readonly key: string; readonly verdict: FleetVerdict }
  | {
      readonly type: 'rejected';
      readonly operation: string;
      readonly key: string | undefined;
      readonly reason: RejectionReason;
      readonly detail: string;
    }
  | {
      readonly type: 'degraded';
      readonly operation: string;
      readonly key: string | undefined;
      readonly mode: DegradedMode;
      readonly reason: DegradedReason;
      readonly ageMs: number;
    }
  | {
      readonly type: 'retry';
      readonly operation: string;
      /** Number of the attempt that follows: from 2. */
      readonly attempt: number;
      readonly waitMs: number;
    }
  /** A retry the policy would have made, and why it is not made. */
  | {
      readonly type: 'retry-stopped';
      readonly operation: string;
      readonly why: 'budget' | 'breaker' | 'deadline' | 'bulkhead';
    }
  | {
      readonly type: 'timeout';
      readonly operation: string;
      readonly timeoutMs: number;
      readonly full: boolean;
    }
  /** Shadow mode: this would have been done. */
  | { readonly type: 'shadow'; readonly operation: string; readonly reason: RejectionReason }
  | {
      readonly type: 'fallback-failed';
      readonly operation: string;
      readonly mode: DegradedMode;
      readonly error: unknown;
    }
  /** A function given by the user or an adapter threw; the call went on without it. */
  | { readonly type: 'callback-failed'; readonly callback: string; readonly error: unknown }
  /** The cap on breaker keys is reached: calls of further keys pass without a breaker. Said once a second at most. */
  | { readonly type: 'keys-capped'; readonly keys: number }
  | { readonly type: 'updated'; readonly generation: number }
);

/** Everything of an event but the policy, which the guard adds. */
export type EventBody = EngineEvent extends infer E
  ? E extends EngineEvent
    ? Omit<E, 'policy'>
    : never
  : never;
