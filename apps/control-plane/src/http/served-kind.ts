import type { Resource } from '@bulwark/views';
import type { ObjectCollection } from '../index/object-collection.js';
import type { ApiObject } from '../objects/api-object.js';
import type { ObjectWrites } from '../objects/object-writes.js';

/** A kind as the API serves it, stored or virtual. */
export interface ServedKind {
  readonly resource: Resource;
  readonly collection: ObjectCollection;
  /** Brings the collection up to date before it is listed. @returns what is missing, for `Warning` headers */
  refresh(): Promise<readonly string[]>;
  /** The newest state of one object. */
  read(namespace: string, name: string): Promise<ApiObject | undefined>;
  /** Whether the collection has everything up to this revision, which some client was told of. */
  reach(revision: number): Promise<boolean>;
  /** Whether watches may begin at this revision; stored kinds answer by their history. */
  knows(revision: number): boolean;
  /** An object just written, as a read would show it. */
  present(object: ApiObject): ApiObject;
  /** Called while somebody watches; ends with the returned function. */
  observe(): () => void;
  /** Absent = nobody writes this kind. */
  readonly writes: ObjectWrites | undefined;
}
