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
  /** A cheaper clock for what nothing is decided by. Absent = `nowMs` is cheap enough. */
  readonly ticker?: Ticker;
}

/** How often a ticker ticks, milliseconds. */
export const TICK_MS = 10;

/**
 * A clock that is read at ticks and not at each question: a reading of the system's clock costs as much as a whole
 * asynchronous call. It ticks every `TICK_MS` while it is asked, and rests otherwise.
 */
export interface Ticker {
  /** Never ahead of the host's `nowMs`; behind it by a tick at most, and by what the event loop was held up. */
  readonly nowMs: () => number;
  /** Runs `task` once at the next tick, with the host's time. */
  readonly atNextTick: (task: (nowMs: number) => void) => void;
}

export type Cancel = () => void;
