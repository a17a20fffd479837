import { type Cancel, type Host, TICK_MS, type Ticker } from '@bulwark/resilience';
import { seededRandom } from './seeded-random.js';

export interface FakeHostOptions {
  /** Where the clock begins; 0 by default. */
  readonly startMs?: number;
  /** Default: `seededRandom(1)`. */
  readonly random?: () => number;
  /** True: it has a ticker that reads the clock every `TICK_MS` of fake time. Default: none, so that every time is exact. */
  readonly ticks?: boolean;
}

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly task: () => void;
}

/** A host whose time moves only when a test says so. Promises settle between timers, as they would in life. */
export class FakeHost implements Host {
  random: () => number;
  private timeMs: number;
  private order = 0;
  private readonly timers = new Set<Timer>();
  readonly ticker?: Ticker;

  constructor(options: FakeHostOptions = {}) {
    this.timeMs = options.startMs ?? 0;
    this.random = options.random ?? seededRandom(1);
    if (options.ticks === true) this.ticker = this.ticking();
  }

  readonly nowMs = (): number => this.timeMs;

  readonly after = (delayMs: number, task: () => void): Cancel => {
    this.order += 1;
    const timer: Timer = { dueMs: this.timeMs + Math.max(0, delayMs), order: this.order, task };
    this.timers.add(timer);
    return () => {
      this.timers.delete(timer);
    };
  };

  /** Timers that wait. A guard keeps at most one. */
  get pending(): number {
    return this.timers.size;
  }

  /** A promise that resolves after this much of the fake time. */
  readonly sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      this.after(ms, resolve);
    });

  /** Lets time pass: runs due timers in order, and what their promises lead to, up to and including the new time. */
  async advance(ms: number): Promise<void> {
    await this.advanceTo(this.timeMs + ms);
  }

  async advanceTo(untilMs: number): Promise<void> {
    await this.settle();
    for (let timer = this.next(untilMs); timer !== undefined; timer = this.next(untilMs)) {
      this.timers.delete(timer);
      this.timeMs = Math.max(this.timeMs, timer.dueMs);
      timer.task();
      await this.settle();
    }
    this.timeMs = Math.max(this.timeMs, untilMs);
  }

  /** Moves the clock alone: timers that became due run at the next `advance`. What a stalled process looks like. */
  skip(ms: number): void {
    this.timeMs += ms;
  }

  /** Lets everything run that needs no time. */
  settle(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  private ticking(): Ticker {
    let lastMs: number | undefined;
    let tasks: ((nowMs: number) => void)[] = [];
    const tick = (): void => {
      lastMs = tasks.length > 0 ? this.timeMs : undefined;
      const due = tasks;
      tasks = [];
      if (lastMs !== undefined) this.after(TICK_MS, tick);
      for (const task of due) task(this.timeMs);
    };
    const start = (): number => {
      if (lastMs !== undefined) return lastMs;
      lastMs = this.timeMs;
      this.after(TICK_MS, tick);
      return lastMs;
    };
    return {
      nowMs: start,
      atNextTick: (task) => {
        start();
        tasks.push(task);
      },
    };
  }

  private next(untilMs: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.timers) {
      if (timer.dueMs > untilMs) continue;
      if (first === undefined || timer.dueMs < first.dueMs) first = timer;
      else if (timer.dueMs === first.dueMs && timer.order < first.order) first = timer;
    }
    return first;
  }
}
