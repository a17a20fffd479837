import { AdaptiveLimit, type AttemptSample } from './adaptive-limit.js';

/** One call that waits for a slot. It is its own list node: queueing allocates nothing. */
export interface Waiter {
  /** Written by the bulkhead only. */
  nextWaiter: Waiter | undefined;
  /** Written by the bulkhead only. */
  previousWaiter: Waiter | undefined;
  /** Written by the bulkhead only. */
  queued: boolean;
  /** The slot is this call's now. It must be released once. Must not throw. */
  granted(): void;
}

export interface BulkheadLimits {
  /** Infinity = no limit. */
  readonly maxConcurrent: number;
  readonly maxQueued: number;
  /** `gradient`: the limit follows what the dependency can take, between 1 and `maxConcurrent`. Absent = it is fixed. */
  readonly adaptive?: 'gradient';
}

export type BulkheadAnswer = 'taken' | 'queued' | 'full';

/**
 * At most `maxConcurrent` at once, the rest in a bounded queue, first come first served. A freed slot goes to the head
 * in the same step, so that no newcomer overtakes. It keeps no time: whoever waits cancels when its wait is over.
 */
export class Bulkhead {
  private head: Waiter | undefined;
  private tail: Waiter | undefined;
  private taken = 0;
  private waiters = 0;
  private handing = false;
  private adaptive: AdaptiveLimit | undefined;
  /** What is in force now: `maxConcurrent`, or less of it. */
  private max = 0;

  constructor(private limits: BulkheadLimits) {
    this.setLimits(limits);
  }

  /** How many may be in flight now; Infinity = no limit. */
  get limit(): number {
    return this.max;
  }

  /** True = the limit follows the load: give it every attempt's end by `sample`. */
  get adapts(): boolean {
    return this.adaptive !== undefined;
  }

  get inFlight(): number {
    return this.taken;
  }

  get waiting(): number {
    return this.waiters;
  }

  /** The numbers a person needs who was refused. */
  numbers(): string {
    const { maxConcurrent, maxQueued } = this.limits;
    const most = this.adaptive === undefined ? '' : ` (adaptive, at most ${maxConcurrent})`;
    return `in flight ${this.taken} of ${this.max}${most}, waiting ${this.waiters} of ${maxQueued}`;
  }

  /** True = `acquire` would take a slot at once. */
  get free(): boolean {
    return this.waiters === 0 && this.taken < this.max;
  }

  /** Takes a slot, or a place in the queue (`granted` will be called, unless cancelled), or neither. */
  acquire(waiter: Waiter): BulkheadAnswer {
    if (this.free) {
      this.taken += 1;
      return 'taken';
    }
    if (this.waiters >= this.limits.maxQueued) return 'full';
    waiter.queued = true;
    waiter.previousWaiter = this.tail;
    waiter.nextWaiter = undefined;
    if (this.tail === undefined) this.head = waiter;
    else this.tail.nextWaiter = waiter;
    this.tail = waiter;
    this.waiters += 1;
    return 'queued';
  }

  /** Takes a slot whatever the limit: a call that only is watched. Released like any other. */
  enter(): void {
    this.taken += 1;
  }

  /** How an attempt with a slot ended, for a limit that follows the load. Right before its `release`. */
  sample(sample: AttemptSample, nowMs: number): void {
    if (this.adaptive === undefined) return;
    this.adaptive.ended(sample, this.taken, nowMs);
    this.max = this.adaptive.limit;
  }

  /** Gives one slot back and hands it on. */
  release(): void {
    if (this.taken === 0) throw new Error('a bulkhead slot was released twice');
    this.taken -= 1;
    if (this.waiters > 0) this.handOn();
  }

  /** Leaves the queue, from anywhere in it. False = it was not there (it has its slot, or left before). */
  cancel(waiter: Waiter): boolean {
    if (!waiter.queued) return false;
    const { previousWaiter, nextWaiter } = waiter;
    if (previousWaiter === undefined) this.head = nextWaiter;
    else previousWaiter.nextWaiter = nextWaiter;
    if (nextWaiter === undefined) this.tail = previousWaiter;
    else nextWaiter.previousWaiter = previousWaiter;
    waiter.queued = false;
    waiter.previousWaiter = undefined;
    waiter.nextWaiter = undefined;
    this.waiters -= 1;
    return true;
  }

  /** New limits in place: places in the queue and slots in use stay; more room is used at once. */
  update(limits: BulkheadLimits): void {
    this.setLimits(limits);
    this.handOn();
  }

  private setLimits(limits: BulkheadLimits): void {
    this.limits = limits;
    if (limits.adaptive === undefined) this.adaptive = undefined;
    else if (this.adaptive === undefined) this.adaptive = new AdaptiveLimit(limits.maxConcurrent);
    else this.adaptive.setMax(limits.maxConcurrent);
    this.max = this.adaptive?.limit ?? limits.maxConcurrent;
  }

  /** A call that ends as it begins releases inside `granted`: the loop takes that up, and the stack stays flat. */
  private handOn(): void {
    if (this.handing) return;
    this.handing = true;
    try {
      while (this.head !== undefined && this.taken < this.max) {
        const next = this.head;
        this.cancel(next);
        this.taken += 1;
        next.granted();
      }
    } finally {
      this.handing = false;
    }
  }
}
