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

  constructor(private limits: BulkheadLimits) {}

  get inFlight(): number {
    return this.taken;
  }

  get waiting(): number {
    return this.waiters;
  }

  /** The numbers a person needs who was refused. */
  numbers(): string {
    const { maxConcurrent, maxQueued } = this.limits;
    return `in flight ${this.taken} of ${maxConcurrent}, waiting ${this.waiters} of ${maxQueued}`;
  }

  /** True = `acquire` would take a slot at once. */
  get free(): boolean {
    return this.waiters === 0 && this.taken < this.limits.maxConcurrent;
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
    this.limits = limits;
    this.handOn();
  }

  /** A call that ends as it begins releases inside `granted`: the loop takes that up, and the stack stays flat. */
  private handOn(): void {
    if (this.handing) return;
    this.handing = true;
    try {
      while (this.head !== undefined && this.taken < this.limits.maxConcurrent) {
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
