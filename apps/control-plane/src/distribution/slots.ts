/** Hands out small numbers, the smallest gaps first filled by the latest freed, so that phases stay dense. */
export class Slots {
  private readonly free: number[] = [];
  private next = 0;

  /** Every number that was taken was given back. */
  get isUnused(): boolean {
    return this.next === 0;
  }

  take(): number {
    return this.free.pop() ?? this.next++;
  }

  give(slot: number): void {
    this.free.push(slot);
    if (this.free.length < this.next) return;
    this.free.length = 0;
    this.next = 0;
  }
}
