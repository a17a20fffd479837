import type { Host } from '@bulwark/resilience';

const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** This process's monotonic clock, randomness and timers. After `release` no timer keeps the process alive. */
export class SystemHost implements Host {
  readonly #timers = new Set<NodeJS.Timeout>();
  #released = false;

  readonly nowMs = (): number => performance.now();

  readonly random = (): number => Math.random();

  readonly after = (delayMs: number, task: () => void): (() => void) => {
    if (delayMs <= 0) {
      const immediate = setImmediate(task);
      return () => clearImmediate(immediate);
    }
    const dueMs = performance.now() + delayMs;
    let timer: NodeJS.Timeout;
    const start = (waitMs: number): void => {
      timer = setTimeout(fire, Math.min(waitMs, MAX_TIMEOUT_MS));
      this.#timers.add(timer);
      if (this.#released) timer.unref();
    };
    // Node's timers count whole milliseconds and may fire a fraction early; the port promises never.
    const fire = (): void => {
      this.#timers.delete(timer);
      const leftMs = dueMs - performance.now();
      if (leftMs > 0) start(Math.ceil(leftMs));
      else task();
    };
    start(Math.ceil(delayMs));
    return () => {
      this.#timers.delete(timer);
      clearTimeout(timer);
    };
  };

  release(): void {
    this.#released = true;
    for (const timer of this.#timers) timer.unref();
  }
}
