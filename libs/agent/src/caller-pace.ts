import type { CallerHold } from '@bulwark/resilience';

/** Measures how long the caller of one call leaves untaken what has arrived for it. */
export class CallerPace {
  readonly #nowMs: () => number;
  #heldMs = 0;
  #sinceMs: number | undefined;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** From now on the dependency waits for the caller. */
  hold(): void {
    this.#sinceMs ??= this.#nowMs();
  }

  /** The caller takes more. */
  release(): void {
    if (this.#sinceMs === undefined) return;
    this.#heldMs += this.#nowMs() - this.#sinceMs;
    this.#sinceMs = undefined;
  }

  read(): CallerHold {
    if (this.#sinceMs === undefined) return { heldMs: this.#heldMs, holding: false };
    return { heldMs: this.#heldMs + this.#nowMs() - this.#sinceMs, holding: true };
  }
}
