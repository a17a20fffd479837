import { randomInt } from 'node:crypto';
import { ObjectCollection } from '../index/object-collection.js';
import { objectKey, withResourceVersion, type ApiObject } from '../objects/api-object.js';
import { jsonEquals } from '../objects/json-value.js';

const TAGS = 1_024;

export interface VirtualCollectionOptions {
  /** Unix milliseconds at which this process began to count. */
  readonly startUnixMs: number;
  /** What of an object counts as a change: times of the last message do not. */
  significant(object: ApiObject): unknown;
}

/**
 * Objects that live in replicas' memory. Their resource versions are this process's own: they begin at its start and
 * carry a random tag, so that a version of another replica, or of a former start, is told apart and answered "too old".
 */
export class VirtualCollection {
  readonly collection: ObjectCollection;
  private readonly tag = randomInt(TAGS);
  private counter: number;

  constructor(private readonly options: VirtualCollectionOptions) {
    this.counter = options.startUnixMs;
    this.collection = new ObjectCollection(this.revision());
  }

  /** Whether this process gave out this version and still knows what came after it. */
  knows(revision: number): boolean {
    return revision % TAGS === this.tag && revision <= this.collection.revision;
  }

  /** Makes these the objects there are; watchers see the differences that count. */
  replaceAll(objects: readonly ApiObject[]): void {
    const present = new Set(objects.map(objectKey));
    for (const object of this.collection.list()) {
      if (!present.has(objectKey(object))) this.collection.delete(objectKey(object), this.nextRevision());
    }
    this.put(objects);
  }

  /** Adds or changes these; the others stay. */
  put(objects: readonly ApiObject[]): void {
    for (const object of objects) {
      const before = this.collection.get(objectKey(object));
      if (before !== undefined && jsonEquals(this.significant(before), this.significant(object))) {
        const { resourceVersion = '' } = before.metadata;
        this.collection.replaceQuietly({ ...object, metadata: { ...object.metadata, resourceVersion } });
        continue;
      }
      const revision = this.nextRevision();
      this.collection.put(withResourceVersion(object, revision), revision);
    }
  }

  private significant(object: ApiObject): unknown {
    return this.options.significant({ ...object, metadata: { ...object.metadata, resourceVersion: '' } });
  }

  private nextRevision(): number {
    this.counter += 1;
    return this.revision();
  }

  private revision(): number {
    return this.counter * TAGS + this.tag;
  }
}
