import type { ApiObject } from '../objects/api-object.js';

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

export interface ObjectEvent {
  readonly type: EventType;
  /** The object after the change; for DELETED the last state, with the deletion's revision. */
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
  /** Position in the collection's log. */
  readonly revision: number;
  /**
   * "status": only what the server computes changed. It has no revision of its own, so a watch from its revision on
   * sees it again: computed status is delivered at least once.
   */
  readonly cause: 'object' | 'status';
}

/** The newest events of a collection, bounded in number: what a watch may resume from. */
export class ChangeHistory {
  private events: ObjectEvent[] = [];
  private oldestKnown = 0;

  /** @param capacity how many events are kept, at least 1 */
  constructor(private readonly capacity: number) {}

  /** A watch may begin at this revision or any later one. */
  get oldest(): number {
    return this.oldestKnown;
  }

  /** Forgets everything; a watch may begin at `revision` at the earliest. */
  reset(revision: number): void {
    this.events = [];
    this.oldestKnown = revision;
  }

  push(event: ObjectEvent): void {
    this.events.push(event);
    // Trimmed in blocks: a shift of a long array for each event would cost its length.
    if (this.events.length < this.capacity * 2) return;
    const dropped = this.events.splice(0, this.events.length - this.capacity);
    this.oldestKnown = Math.max(this.oldestKnown, dropped.at(-1)?.revision ?? 0);
  }

  /** Events after `revision` in order, or undefined when some of them are forgotten. */
  after(revision: number): readonly ObjectEvent[] | undefined {
    if (revision < this.oldestKnown) return undefined;
    const first = this.firstFrom(revision);
    return this.events.slice(first).filter((event) => event.revision > revision || event.cause === 'status');
  }

  private firstFrom(revision: number): number {
    let low = 0;
    let high = this.events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.events[middle]?.revision ?? 0) < revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
