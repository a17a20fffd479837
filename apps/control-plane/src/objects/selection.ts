import type { ApiObject } from './api-object.js';
import type { EventType, ObjectEvent } from '../index/change-history.js';
import { parseFieldSelector } from './field-selector.js';
import { parseLabelSelector } from './label-selector.js';

/** What a list or watch asks for. */
export interface SelectionQuery {
  /** Absent = all namespaces. */
  readonly namespace: string | undefined;
  readonly labelSelector: string;
  readonly fieldSelector: string;
}

export type Selection = (object: ApiObject) => boolean;

export function parseSelection(query: SelectionQuery): Selection {
  const labels = parseLabelSelector(query.labelSelector);
  const fields = parseFieldSelector(query.fieldSelector);
  return (object) =>
    (query.namespace === undefined || object.metadata.namespace === query.namespace) &&
    labels(object.metadata.labels) &&
    fields(object);
}

/**
 * How an event looks to a watcher that sees a part only: an object that begins to match is ADDED to it, one that
 * stops to match is DELETED. Undefined = the watcher does not see it.
 */
export function seenAs(event: ObjectEvent, selection: Selection): EventType | undefined {
  const before = event.previous !== undefined && selection(event.previous);
  const after = event.type !== 'DELETED' && selection(event.object);
  if (before) return after ? 'MODIFIED' : 'DELETED';
  return after ? 'ADDED' : undefined;
}
