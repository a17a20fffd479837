import { objectKey, withResourceVersion, type ApiObject } from '../objects/api-object.js';
import { ChangeHistory, type EventType, type ObjectEvent } from './change-history.js';

export type ObjectListener = (event: ObjectEvent) => void;

const HISTORY_EVENTS = 4_096;

/**
 * The objects of one kind, with the log of their changes: what lists, reads and watches are served from. Objects are
 * never changed in place. Taking a snapshot and subscribing in one synchronous step misses and doubles nothing.
 */
export class ObjectCollection {
  private readonly objects = new Map<string, ApiObject>();
  private readonly history: ChangeHistory;
  private readonly listeners = new Set<ObjectListener>();
  private at: number;

  /** @param startRevision the collection's revision before any change; watches from before it are told "too old" */
  constructor(startRevision = 0, historyEvents = HISTORY_EVENTS) {
    this.at = startRevision;
    this.history = new ChangeHistory(historyEvents);
    this.history.reset(startRevision);
  }

  get revision(): number {
    return this.at;
  }

  get oldestRevision(): number {
    return this.history.oldest;
  }

  get watchers(): number {
    return this.listeners.size;
  }

  get(key: string): ApiObject | undefined {
    return this.objects.get(key);
  }

  /** In order of namespace and name. */
  list(): ApiObject[] {
    return [...this.objects.entries()]
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([, object]) => object);
  }

  values(): IterableIterator<ApiObject> {
    return this.objects.values();
  }

  /** Events after `revision`; undefined = too old. */
  after(revision: number): readonly ObjectEvent[] | undefined {
    return this.history.after(revision);
  }

  subscribe(listener: ObjectListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Adds or replaces; the object carries its own resourceVersion. */
  put(object: ApiObject, revision: number): void {
    const key = objectKey(object);
    const previous = this.objects.get(key);
    this.objects.set(key, object);
    this.emit(previous === undefined ? 'ADDED' : 'MODIFIED', { object, previous, revision, cause: 'object' });
  }

  /** Replaces what only readers see, such as the time of a last message: no revision, and no event for watchers. */
  replaceQuietly(object: ApiObject): void {
    const key = objectKey(object);
    if (this.objects.has(key)) this.objects.set(key, object);
  }

  delete(key: string, revision: number): void {
    const previous = this.objects.get(key);
    if (previous === undefined) return;
    this.objects.delete(key);
    const object = withResourceVersion(previous, revision);
    this.emit('DELETED', { object, previous, revision, cause: 'object' });
  }

  /** Replaces what the server computes about an object, without a new revision. */
  putStatus(object: ApiObject): void {
    const key = objectKey(object);
    const previous = this.objects.get(key);
    if (previous === undefined) return;
    this.objects.set(key, object);
    this.emit('MODIFIED', { object, previous, revision: this.at, cause: 'status' });
  }

  /** Says that nothing else happened up to `revision`. */
  advance(revision: number): void {
    this.at = Math.max(this.at, revision);
  }

  /** The log has a hole: watches from before `revision` must list again. Live ones go on. */
  forgetHistory(revision: number): void {
    this.at = revision;
    this.history.reset(revision);
  }

  private emit(type: EventType, event: Omit<ObjectEvent, 'type'>): void {
    this.at = Math.max(this.at, event.revision);
    const whole = { type, ...event };
    this.history.push(whole);
    for (const listener of this.listeners) listener(whole);
  }
}
