import { machineMs } from './clock.js';

/**
 * A Ctrl-C may come two or three times at once: from the terminal, from npm and from the script that started this
 * process. That is one; a person's second one comes later.
 */
const TOGETHER_MS = 500;

/** The first wish to end is granted in order, a second one at once. */
export class Interruption {
  readonly #controller = new AbortController();
  readonly #atOnce: () => void;
  #firstMs = 0;

  constructor(atOnce: () => void) {
    this.#atOnce = atOnce;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  wish(): void {
    if (!this.signal.aborted) {
      this.#firstMs = machineMs();
      this.#controller.abort(new Error('interrupted'));
    } else if (machineMs() - this.#firstMs > TOGETHER_MS) {
      this.#atOnce();
    }
  }
}
