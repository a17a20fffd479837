import { StoreError } from '@bulwark/store';
import type { Resource } from '@bulwark/views';
import type { ServedKind } from '../http/served-kind.js';
import type { ObjectCollection } from '../index/object-collection.js';
import type { StoreMirror } from '../index/store-mirror.js';
import type { ApiObject } from '../objects/api-object.js';
import type { ObjectStore } from '../objects/object-store.js';
import type { ObjectWrites } from '../objects/object-writes.js';
import type { PolicyObjects } from './policy-objects.js';

const REACH_MS = 3_000;

export interface StoredPoliciesOptions {
  readonly resource: Resource;
  readonly collection: ObjectCollection;
  readonly mirror: StoreMirror;
  readonly objects: PolicyObjects;
  readonly store: ObjectStore;
  readonly writes: ObjectWrites;
}

/** Policies as the API serves them. */
export class StoredPolicies implements ServedKind {
  readonly resource: Resource;
  readonly collection: ObjectCollection;
  readonly writes: ObjectWrites;

  constructor(private readonly options: StoredPoliciesOptions) {
    this.resource = options.resource;
    this.collection = options.collection;
    this.writes = options.writes;
  }

  /** Lists are served from memory, which holds every write made at this replica. */
  async refresh(): Promise<readonly string[]> {
    if (!this.options.mirror.loaded) throw new StoreError('unavailable', 'not loaded yet');
    await Promise.resolve();
    this.options.objects.refresh();
    return [];
  }

  /** From the store, which knows every write made anywhere; from memory while the store is away. */
  async read(namespace: string, name: string): Promise<ApiObject | undefined> {
    try {
      const object = await this.options.store.read(namespace, name);
      return object && this.options.objects.withStatus(object);
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'unavailable' || !this.options.mirror.loaded)
        throw error;
      return this.collection.get(`${namespace}/${name}`);
    }
  }

  async reach(revision: number): Promise<boolean> {
    const confirmed = await this.options.mirror.confirm(revision, REACH_MS);
    this.collection.advance(this.options.mirror.revision);
    return confirmed === 'reached';
  }

  present(object: ApiObject): ApiObject {
    return this.options.objects.withStatus(object);
  }

  knows(): boolean {
    return true;
  }

  observe(): () => void {
    return () => undefined;
  }
}
