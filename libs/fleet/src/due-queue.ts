/** Something that wants to be woken. `dueMs` may change at any time; `DueQueue.put` must be told. */
export interface Due {
  readonly dueMs: number;
}

interface Entry<T> {
  readonly atMs: number;
  readonly item: T;
}

/** A heap of what is to be done next. Entries that no longer say when their item is due are passed over. */
export class DueQueue<T extends Due> {
  private readonly heap: Entry<T>[] = [];

  /** Infinity = never: nothing is kept. */
  put(item: T): void {
    if (item.dueMs === Infinity) return;
    const { heap } = this;
    heap.push({ atMs: item.dueMs, item });
    let index = heap.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.at(parent) <= this.at(index)) break;
      this.swap(parent, index);
      index = parent;
    }
  }

  /** The first item that is due by then, taken out; undefined = none. */
  take(nowMs: number): T | undefined {
    return this.nextMs() <= nowMs ? this.pop()?.item : undefined;
  }

  /** Infinity = nothing to do. */
  nextMs(): number {
    for (;;) {
      const first = this.heap[0];
      if (first === undefined) return Infinity;
      if (first.atMs === first.item.dueMs) return first.atMs;
      this.pop();
    }
  }

  private pop(): Entry<T> | undefined {
    const { heap } = this;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    heap[0] = last;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      if (left >= heap.length) return first;
      const least = this.at(left + 1) < this.at(left) ? left + 1 : left;
      if (this.at(index) <= this.at(least)) return first;
      this.swap(index, least);
      index = least;
    }
  }

  private at(index: number): number {
    return this.heap[index]?.atMs ?? Infinity;
  }

  private swap(one: number, other: number): void {
    const { heap } = this;
    const [a, b] = [heap[one], heap[other]];
    if (a === undefined || b === undefined) return;
    heap[one] = b;
    heap[other] = a;
  }
}
