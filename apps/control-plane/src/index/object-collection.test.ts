import { describe, expect, it } from 'vitest';
import type { ApiObject } from '../objects/api-object.js';
import { ObjectCollection } from './object-collection.js';

function object(name: string, revision: number, status?: unknown): ApiObject {
  const metadata = { name, namespace: 'shop', resourceVersion: String(revision) };
  return { apiVersion: 'v', kind: 'k', metadata, status };
}

const told = (collection: ObjectCollection, revision: number) =>
  collection
    .after(revision)
    ?.map(({ type, object: { metadata } }) => `${type} ${metadata.name}@${metadata.resourceVersion}`);

describe('the log of a collection', () => {
  it('tells what came after a revision, in order, once', () => {
    const collection = new ObjectCollection(5);
    collection.put(object('a', 6), 6);
    collection.put(object('a', 7), 7);
    collection.delete('shop/a', 9);
    expect(told(collection, 5)).toEqual(['ADDED a@6', 'MODIFIED a@7', 'DELETED a@9']);
    expect(told(collection, 6)).toEqual(['MODIFIED a@7', 'DELETED a@9']);
    expect(told(collection, 9)).toEqual([]);
  });

  it('does not know what was before it began, or what it had to forget', () => {
    const collection = new ObjectCollection(5, 10);
    expect(collection.after(4)).toBeUndefined();
    for (let revision = 6; revision < 100; revision += 1) collection.put(object('a', revision), revision);
    expect(collection.after(6)).toBeUndefined();
    expect(collection.after(collection.oldestRevision)?.length).toBeGreaterThanOrEqual(10);
    collection.forgetHistory(200);
    expect(collection.after(199)).toBeUndefined();
    expect(collection.after(200)).toEqual([]);
  });

  it('tells computed status again to a watch from the revision it was computed at', () => {
    const collection = new ObjectCollection();
    collection.put(object('a', 6), 6);
    collection.putStatus(object('a', 6, 'ready'));
    expect(told(collection, 6)).toEqual(['MODIFIED a@6']);
    collection.put(object('b', 8), 8);
    expect(told(collection, 8)).toEqual([]);
    collection.putStatus(object('unknown', 1));
    expect(collection.list()).toHaveLength(2);
  });

  it('tells subscribers at once, until they leave', () => {
    const collection = new ObjectCollection();
    const seen: string[] = [];
    const leave = collection.subscribe(({ type }) => seen.push(type));
    collection.put(object('a', 1), 1);
    leave();
    collection.put(object('a', 2), 2);
    expect(seen).toEqual(['ADDED']);
  });
});
