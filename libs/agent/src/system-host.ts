import { type Host, TICK_MS, type Ticker } from '@bulwark/resilience';

const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** This process's monotonic clock, randomness and timers. After `release` no timer keeps the process alive. */
export class SystemHost implements Host {
  readonly #timers = new Set<NodeJS.Timeout>();
  #released = false;

  readonly nowMs = (): number => performance.now();

  readonly random = (): number => Math.random();

  readonly ticker = new SystemTicker();

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
    this.ticker.release();
    for (const timer of this.#timers) timer.unref();
  }
}

/** Ticks while it is asked. It keeps the process alive only while calls wait for a tick. */
class SystemTicker implements Ticker {
  #lastMs = 0;
  #ticking = false;
  #asked = false;
  #released = false;
  #timer: NodeJS.Timeout | undefined;
  #tasks: ((nowMs: number) => void)[] = [];

  readonly nowMs = (): number => {
    if (!this.#ticking) return this.#start();
    this.#asked = true;
    return this.#lastMs;
  };

  readonly atNextTick = (task: (nowMs: number) => void): void => {
    if (!this.#ticking) this.#start();
    this.#tasks.push(task);
    if (this.#tasks.length === 1 && !this.#released) this.#timer?.ref();
  };

  release(): void {
    this.#released = true;
    this.#timer?.unref();
  }

  #start(): number {
    this.#ticking = true;
    this.#lastMs = performance.now();
    if (this.#timer === undefined) this.#timer = setTimeout(this.#tick, TICK_MS).unref();
    else this.#timer.refresh();
    return this.#lastMs;
  }

  readonly #tick = (): void => {
    this.#lastMs = performance.now();
    const tasks = this.#tasks;
    this.#ticking = this.#asked || tasks.length > 0;
    this.#asked = false;
    if (tasks.length > 0) {
      this.#tasks = [];
      this.#timer?.unref();
    }
    if (this.#ticking) this.#timer?.refresh();
    for (const task of tasks) task(this.#lastMs);
  };
}
