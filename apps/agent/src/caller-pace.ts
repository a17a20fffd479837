import type { CallerHold } from '@bulwark/agent';

/**
 * Measures how long the caller of one call holds it up: it does not take the answer that is there, or does not send the
 * rest of its body. Both at once are counted once.
 */
export class CallerPace {
  readonly #nowMs: () => number;
  #heldMs = 0;
  #sinceMs = 0;
  readonly #holds = new Set<'upload' | 'download'>();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** From now on the other side waits for the caller. */
  hold(side: 'upload' | 'download'): void {
    if (this.#holds.size === 0) this.#sinceMs = this.#nowMs();
    this.#holds.add(side);
  }

  /** The caller moved. */
  release(side: 'upload' | 'download'): void {
    if (!this.#holds.delete(side) || this.#holds.size > 0) return;
    this.#heldMs += this.#nowMs() - this.#sinceMs;
  }

  read(): CallerHold {
    const holding = this.#holds.size > 0;
    return { heldMs: this.#heldMs + (holding ? this.#nowMs() - this.#sinceMs : 0), holding };
  }
}
