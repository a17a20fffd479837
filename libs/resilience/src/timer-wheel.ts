/**
 * One thing that waits for its time. It is its own list node, so that starting and cancelling allocate nothing.
 * Extend it; an entry waits in at most one wheel, for at most one time.
 */
export abstract class WheelEntry {
  /** Written by the wheel only; meaningful while `waiting`. */
  dueMs = 0;
  /** Written by the wheel only. */
  slot = -1;
  /** Written by the wheel only. */
  previous: WheelEntry | undefined = undefined;
  /** Written by the wheel only. */
  next: WheelEntry | undefined = undefined;

  /** Called once by `advance`, at `dueMs` or later, after the entry has left the wheel. */
  abstract due(nowMs: number): void;

  get waiting(): boolean {
    return this.slot >= 0;
  }
}

/**
 * A hashed timing wheel: any number of waits behind one timer of the host, O(1) to start and to cancel.
 * It holds no clock: whoever drives it calls `advance` at `nextDueMs()` or later. Entries are never run early.
 */
export class TimerWheel {
  /** One list a slot. */
  private readonly heads: (WheelEntry | undefined)[];
  /** The list of those that are held; their slot is the one after the last. */
  private held: WheelEntry | undefined;
  private cursor = 0;
  private count = 0;

  /** `tickMs` > 0 is the width of a slot; waits longer than tickMs × slots stay and are looked at once a turn. */
  constructor(
    private readonly tickMs = 16,
    private readonly slots = 128,
  ) {
    this.heads = Array.from({ length: slots }, () => undefined);
  }

  /** Entries that wait. */
  get size(): number {
    return this.count;
  }

  /** Starts a wait, or moves one that runs. A time in the past is due at the next `advance`. */
  schedule(entry: WheelEntry, dueMs: number): void {
    if (entry.slot >= 0) this.cancel(entry);
    const slot = Math.max(this.cursor, Math.floor(dueMs / this.tickMs)) % this.slots;
    const head = this.heads[slot];
    entry.dueMs = dueMs;
    entry.slot = slot;
    entry.previous = undefined;
    entry.next = head;
    if (head !== undefined) head.previous = entry;
    this.heads[slot] = entry;
    this.count += 1;
  }

  /**
   * Holds a new entry whose beginning is not known yet: it waits, and is not due, until `release` says what time it is.
   * `dueMs` is the length of its wait so far.
   */
  hold(entry: WheelEntry, delayMs: number): void {
    const { held } = this;
    entry.dueMs = delayMs;
    entry.slot = this.slots;
    entry.next = held;
    if (held !== undefined) held.previous = entry;
    this.held = entry;
    this.count += 1;
  }

  /** The waits of the held entries begin now. Answers when the first of them ends; Infinity when there were none. */
  release(nowMs: number): number {
    let earliest = Infinity;
    for (let entry = this.held; entry !== undefined; entry = this.held) {
      const dueMs = nowMs + entry.dueMs;
      this.schedule(entry, dueMs);
      if (dueMs < earliest) earliest = dueMs;
    }
    return earliest;
  }

  /** Whether the entry is held: its `dueMs` is a length and not a time. */
  holds(entry: WheelEntry): boolean {
    return entry.slot === this.slots;
  }

  /** Does nothing when the entry does not wait. */
  cancel(entry: WheelEntry): void {
    if (entry.slot < 0) return;
    if (entry.previous !== undefined) entry.previous.next = entry.next;
    else if (entry.slot === this.slots) this.held = entry.next;
    else this.heads[entry.slot] = entry.next;
    if (entry.next !== undefined) entry.next.previous = entry.previous;
    entry.slot = -1;
    entry.previous = undefined;
    entry.next = undefined;
    this.count -= 1;
  }

  /** Time of the earliest entry; Infinity when none waits but held ones. Looks at the entries near the cursor only, as a rule. */
  nextDueMs(): number {
    if (this.count === 0) return Infinity;
    let earliest = Infinity;
    for (let step = 0; step < this.slots; step += 1) {
      const tick = this.cursor + step;
      for (let entry = this.heads[tick % this.slots]; entry !== undefined; entry = entry.next) {
        if (entry.dueMs < earliest) earliest = entry.dueMs;
      }
      if (earliest < (tick + 1) * this.tickMs) return earliest;
    }
    return earliest;
  }

  /** Runs everything that is due, earliest first. Entries may start and cancel entries meanwhile. */
  advance(nowMs: number): void {
    const due = this.collectDue(nowMs);
    this.cursor = Math.max(this.cursor, Math.floor(nowMs / this.tickMs));
    due.sort((a, b) => a.dueMs - b.dueMs);
    for (const entry of due) {
      // An earlier one may have cancelled or moved it.
      if (entry.slot < 0 || entry.dueMs > nowMs) continue;
      this.cancel(entry);
      entry.due(nowMs);
    }
  }

  private collectDue(nowMs: number): WheelEntry[] {
    const due: WheelEntry[] = [];
    if (this.count === 0) return due;
    const ticks = Math.min(Math.floor(nowMs / this.tickMs) - this.cursor + 1, this.slots);
    for (let step = 0; step < ticks; step += 1) {
      const slot = (this.cursor + step) % this.slots;
      for (let entry = this.heads[slot]; entry !== undefined; entry = entry.next) {
        if (entry.dueMs <= nowMs) due.push(entry);
      }
    }
    // Lists hold the newest first; waits for the same time end in the order they began.
    return due.reverse();
  }
}
