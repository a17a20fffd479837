import { expect, it } from 'vitest';
import type { ApiObject } from '../objects/api-object.js';
import { VirtualCollection } from './virtual-collection.js';

it('shows the time of the last message to readers without a change for watchers', () => {
  const agent = (lastSeen: string): ApiObject => ({
    apiVersion: 'v',
    kind: 'Agent',
    metadata: { name: 'a', namespace: 'shop' },
    status: { lastSeen },
  });
  const virtual = new VirtualCollection({
    startUnixMs: 1_000,
    significant: (object) => ({ ...object, status: {} }),
  });
  const events: unknown[] = [];
  virtual.collection.subscribe((event) => events.push(event));
  virtual.put([agent('12:00:00')]);
  const before = virtual.collection.get('shop/a');
  virtual.put([agent('12:00:01')]);
  const after = virtual.collection.get('shop/a');
  expect(after?.status).toEqual({ lastSeen: '12:00:01' });
  expect(after?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  expect(events).toHaveLength(1);
});
