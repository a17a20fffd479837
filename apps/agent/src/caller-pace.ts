import type { CallerHold } from '@bulwark/agent';

/**
 * Measures how long the caller of one call holds it up: it does not take the answer that is there, or does not send the
 * rest of its body. Both at once are counted once.
 */
export class CallerPace {
  readonly #nowMs: () => number;
  #heldMs = 0;
  #sinceMs = 0;
  #upload = false;
  #download = false;

  constructor(nowMs: () => number = monotonicMs) {
    this.#nowMs = nowMs;
  }

  /** From now on the other side waits for the caller. */
  hold(side: 'upload' | 'download'): void {
    if (!this.#holding) this.#sinceMs = this.#nowMs();
    this.#set(side, true);
  }

  /** The caller moved. */
  release(side: 'upload' | 'download'): void {
    if (!this.#holding) return;
    this.#set(side, false);
    if (!this.#holding) this.#heldMs += this.#nowMs() - this.#sinceMs;
  }

  read(): CallerHold {
    const holding = this.#holding;
    return { heldMs: this.#heldMs + (holding ? this.#nowMs() - this.#sinceMs : 0), holding };
  }

  get #holding(): boolean {
    return this.#upload || this.#download;
  }

  #set(side: 'upload' | 'download', held: boolean): void {
    if (side === 'upload') this.#upload = held;
    else this.#download = held;
  }
}

function monotonicMs(): number {
  return performance.now();
}
