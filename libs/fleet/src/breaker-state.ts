/**
 * The fleet's breaker of one key.
 *
 *            trip                 cooldown over
 *   closed ────────▶ open ──────────────────────▶ half-open ──┐ permit given,
 *     ▲               ▲ ▲        probe failed         │ │ ▲ └──┘ lost, given elsewhere
 *     │               │ └─────────────────────────────┘ │
 *     │   step failed │                 probe succeeded  │
 *     ├────────── recovering ◀──────────────────────────┤
 *     │ last step   └─▶ next step                        │
 *     └──────────────────── (no steps) ──────────────────┘
 *
 * Any state may also follow itself: a new decider takes over, a person forces or releases. Each arrow is a write with the
 * epoch raised by one, and is in force (here too) only once it is stored.
 */
import type { FleetState } from './contract.js';

export type BreakerState =
  | { readonly name: 'closed' }
  | { readonly name: 'open'; readonly untilMs: number }
  | {
      readonly name: 'half-open';
      /** Undefined: waiting for demand, or for `notBeforeMs`. */
      readonly permit: LivePermit | undefined;
      /** Probe calls of this episode that succeeded under former permits. */
      readonly successes: number;
      /** No permit is given earlier: a former decider's may still be alive, or several ended without an outcome. */
      readonly notBeforeMs: number;
      /** Permits in a row that ended without an outcome. */
      readonly fruitless: number;
    }
  | { readonly name: 'recovering'; readonly step: number; readonly fromMs: number; readonly endsMs: number };

export type HalfOpen = Extract<BreakerState, { name: 'half-open' }>;
export type Recovering = Extract<BreakerState, { name: 'recovering' }>;

export interface LivePermit {
  readonly agent: string;
  readonly incarnation: string;
  readonly calls: number;
  /** After it nobody uses the permit any more, however late it arrived. */
  readonly deadlineMs: number;
}

const LEGAL: Readonly<Record<FleetState, readonly FleetState[]>> = {
  closed: ['closed', 'open'],
  open: ['open', 'half-open'],
  'half-open': ['half-open', 'open', 'recovering', 'closed'],
  recovering: ['recovering', 'open', 'closed'],
};

/** Throws for an edge that is not drawn above: that is a defect. */
export function assertLegal(from: FleetState, to: FleetState): void {
  if (!LEGAL[from].includes(to)) throw new Error(`illegal edge ${from} to ${to}`);
}

/** Cooldown of the n-th trip since the last full close, n from 1. */
export function cooldownOf(
  cooldown: { readonly initialMs: number; readonly maxMs: number; readonly factor: number },
  trips: number,
): number {
  return Math.min(cooldown.maxMs, cooldown.initialMs * cooldown.factor ** (trips - 1));
}
