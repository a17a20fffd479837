import type { CallerHold } from '@bulwark/resilience';

/** How long the application itself held an attempt up: it sent nothing, or took nothing of what had come. */
export class HoldMeter {
  readonly #nowMs: () => number;
  #heldMs = 0;
  #sinceMs: number | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  set(holding: boolean): void {
    if (holding === (this.#sinceMs !== undefined)) return;
    const nowMs = this.#nowMs();
    if (this.#sinceMs !== undefined) this.#heldMs += nowMs - this.#sinceMs;
    this.#sinceMs = holding ? nowMs : undefined;
  }

  read(): CallerHold {
    const sinceMs = this.#sinceMs;
    const runningMs = sinceMs === undefined ? 0 : this.#nowMs() - sinceMs;
    return { heldMs: this.#heldMs + runningMs, holding: sinceMs !== undefined };
  }
}
