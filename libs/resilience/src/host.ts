/** Everything the engine needs from the outside. It has no clock, timer or randomness of its own. */
export interface Host {
  /** Monotonic milliseconds, fractions allowed. Never goes back; may stand still. */
  readonly nowMs: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /**
   * Runs `task` once, no earlier than `delayMs` (≥ 0) from now. The host may be late (a coarse wheel), never early.
   * The answer cancels it; cancelling twice or after the run does nothing.
   */
  readonly after: (delayMs: number, task: () => void) => Cancel;
}

export type Cancel = () => void;
