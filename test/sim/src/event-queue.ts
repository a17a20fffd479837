interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly task: () => void;
}

/** Simulated time: events run in order of their time, those of one time in the order they were made. */
export class EventQueue {
  nowMs = 0;
  private order = 0;
  private readonly heap: Event[] = [];

  /** Runs `task` after this time. */
  after(delayMs: number, task: () => void): void {
    this.order += 1;
    const event = { atMs: this.nowMs + Math.max(0, delayMs), order: this.order, task };
    const { heap } = this;
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent]!;
      if (before(above, event)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = event;
  }

  /** Runs everything up to and including this time. */
  runUntil(untilMs: number): void {
    for (let first = this.heap[0]; first !== undefined && first.atMs <= untilMs; first = this.heap[0]) {
      this.pop();
      this.nowMs = first.atMs;
      first.task();
    }
    this.nowMs = untilMs;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child += 1;
      if (before(last, heap[child]!)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
  }
}

function before(one: Event, other: Event): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}
