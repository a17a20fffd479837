import { describe, expect, it } from 'vitest';
import type { ApiObject } from './api-object.js';
import { parseFieldSelector } from './field-selector.js';
import { parseLabelSelector } from './label-selector.js';
import { parseSelection, seenAs } from './selection.js';

function object(name: string, labels: Record<string, string> = {}): ApiObject {
  return { apiVersion: 'v', kind: 'k', metadata: { name, namespace: 'shop', labels } };
}

describe('a label selector', () => {
  const labels = { app: 'web', 'bulwark.dev/zone': 'a' };

  it.each([
    ['app=web', true],
    ['app==web,bulwark.dev/zone=a', true],
    ['app=web,bulwark.dev/zone=b', false],
    ['app!=web', false],
    ['tier!=front', true],
    ['app in (web, api)', true],
    ['app notin (web,api)', false],
    ['tier notin (front)', true],
    ['app', true],
    ['tier', false],
    ['!tier', true],
    ['', true],
    ['toString', false],
  ])('%s is %s for app=web in zone a', (text, expected) => {
    expect(parseLabelSelector(text)(labels)).toBe(expected);
  });

  it.each(['=x', 'a in web', 'a in (b', 'a=b,', 'a b', '!', 'a=b c', 'a=(x)'])(
    '%s is refused as unreadable',
    (text) => {
      expect(() => parseLabelSelector(text)).toThrow('labelSelector');
    },
  );
});

describe('a field selector', () => {
  it('selects by name and namespace and refuses other fields by name', () => {
    expect(parseFieldSelector('metadata.name=a')(object('a'))).toBe(true);
    expect(parseFieldSelector('metadata.name!=a,metadata.namespace=shop')(object('a'))).toBe(false);
    expect(() => parseFieldSelector('spec.target=x')).toThrow('field label not supported: spec.target');
    expect(() => parseFieldSelector('metadata.name')).toThrow('invalid field selector');
  });
});

describe('a watcher of a part of the objects', () => {
  const selection = parseSelection({ namespace: 'shop', labelSelector: 'on=yes', fieldSelector: '' });
  const inside = object('a', { on: 'yes' });
  const outside = object('a', { on: 'no' });
  const event = (previous: ApiObject | undefined, now: ApiObject) =>
    seenAs(
      { type: previous ? 'MODIFIED' : 'ADDED', object: now, previous, revision: 1, cause: 'object' },
      selection,
    );

  it('is told ADDED when an object begins to match and DELETED when it stops', () => {
    expect(event(outside, inside)).toBe('ADDED');
    expect(event(inside, outside)).toBe('DELETED');
    expect(event(inside, inside)).toBe('MODIFIED');
    expect(event(undefined, outside)).toBeUndefined();
  });

  it('is told of the deletion of what it saw, and of nothing else', () => {
    const deleted = { type: 'DELETED', revision: 1, cause: 'object' } as const;
    expect(seenAs({ ...deleted, object: inside, previous: inside }, selection)).toBe('DELETED');
    expect(seenAs({ ...deleted, object: outside, previous: outside }, selection)).toBeUndefined();
  });
});
