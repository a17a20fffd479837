import { StoreError, type Entry, type Store } from '@bulwark/store';
import { alreadyExists, ApiError, conflict, notFound, type Subject } from '../errors/api-error.js';
import { withResourceVersion, type ApiObject } from './api-object.js';
import { jsonEquals } from './json-value.js';
import type { StoredKind } from './stored-kind.js';

/** What a change makes of an object; undefined = it is to be deleted. Called again when another write came between. */
export type Change = (existing: ApiObject) => ApiObject | undefined;

const ATTEMPTS = 12;
/** What the store takes as one value. */
const MAX_OBJECT_BYTES = 1024 * 1024;
/** What can be a segment of a key: nothing that is not a name is stored. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Objects of one kind in the store. Each write is one compare-and-write, repeated whole when another one won. */
export class ObjectStore {
  constructor(
    private readonly store: Store,
    readonly kind: StoredKind,
  ) {}

  key(namespace: string, name: string): string {
    return `/bulwark/objects/${this.kind.plural}/${namespace}/${name}`;
  }

  /** The newest stored state; undefined = absent. */
  async read(namespace: string, name: string): Promise<ApiObject | undefined> {
    if (!NAME.test(namespace) || !NAME.test(name)) return undefined;
    const entry = await this.store.get(this.key(namespace, name));
    return entry === undefined ? undefined : decodeObject(entry);
  }

  /** @returns the object as stored, with its resourceVersion */
  async create(object: ApiObject): Promise<ApiObject> {
    const { namespace, name } = object.metadata;
    const key = this.key(namespace, name);
    const value = storedText(object);
    for (let attempt = 1; ; attempt += 1) {
      try {
        const result = await this.store.commit({
          conditions: [{ key, modRevision: 0 }],
          writes: [{ kind: 'put', key, value }],
        });
        if (result.committed) return withResourceVersion(object, result.revision);
        const [current] = result.current;
        // Only after an unknown outcome: the uid in the value is this request's own.
        if (current?.value === value) return decodeObject(current);
        throw alreadyExists(this.subject(name));
      } catch (error) {
        if (!isUnknownOutcome(error) || attempt >= ATTEMPTS) throw error;
      }
    }
  }

  /** Applies `change` to the newest state; a change that changes nothing is not written. */
  async change(
    namespace: string,
    name: string,
    change: Change,
  ): Promise<{ object: ApiObject; deleted: boolean; revision: number }> {
    if (!NAME.test(namespace) || !NAME.test(name)) throw notFound({ plural: this.kind.plural, name });
    const key = this.key(namespace, name);
    let tried: string | undefined;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const entry = await this.store.get(key);
      if (entry === undefined) throw notFound({ plural: this.kind.plural, name });
      const existing = decodeObject(entry);
      if (entry.value === tried) return { object: existing, deleted: false, revision: entry.modRevision };
      const next = change(existing);
      if (next !== undefined && sameStored(next, existing)) {
        return { object: existing, deleted: false, revision: entry.modRevision };
      }
      tried = next === undefined ? undefined : storedText(next);
      const revision = await this.commitChange(entry, tried);
      if (revision === undefined) continue;
      const object = withResourceVersion(next ?? existing, revision);
      return { object, deleted: next === undefined, revision };
    }
    throw conflict(this.subject(name), 'too many other writes; please try again');
  }

  /** Undefined = another write won, or nobody knows: look again. */
  private async commitChange(entry: Entry, value: string | undefined): Promise<number | undefined> {
    const { key, modRevision } = entry;
    try {
      const result = await this.store.commit({
        conditions: [{ key, modRevision }],
        writes: [value === undefined ? { kind: 'delete', key } : { kind: 'put', key, value }],
      });
      return result.committed ? result.revision : undefined;
    } catch (error) {
      if (isUnknownOutcome(error) && value !== undefined) return undefined;
      throw error;
    }
  }

  private subject(name: string): Subject {
    return { plural: this.kind.plural, kind: this.kind.kind, name };
  }
}

function storedText(object: ApiObject): string {
  const text = JSON.stringify(object);
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_OBJECT_BYTES) return text;
  throw new ApiError('RequestEntityTooLarge', `the object would have ${bytes} bytes, more than 1 MiB`);
}

function isUnknownOutcome(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'unknown-outcome';
}

function sameStored(a: ApiObject, b: ApiObject): boolean {
  const strip = (object: ApiObject): unknown => ({
    ...object,
    metadata: { ...object.metadata, resourceVersion: undefined },
  });
  return jsonEquals(strip(a), strip(b));
}

/** An object of a store entry; its resourceVersion is the entry's own revision. */
export function decodeObject(entry: Entry): ApiObject {
  return withResourceVersion(JSON.parse(entry.value) as ApiObject, entry.modRevision);
}
