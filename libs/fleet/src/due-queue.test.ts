import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DueQueue } from './due-queue.js';

test('gives what is due in the order of time, as it is due last, and nothing else', () => {
  const change = fc.record({ item: fc.nat(9), dueMs: fc.integer({ min: 0, max: 100 }) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), fc.integer({ min: 0, max: 100 }), (changes, nowMs) => {
      const queue = new DueQueue<{ name: number; dueMs: number }>();
      const items = Array.from({ length: 10 }, (_, name) => ({ name, dueMs: Infinity }));
      for (const { item, dueMs } of changes) {
        items[item]!.dueMs = dueMs;
        queue.put(items[item]!);
      }
      const expected = items
        .map(({ dueMs }) => ({ dueMs }))
        .filter(({ dueMs }) => dueMs <= nowMs)
        .sort((a, b) => a.dueMs - b.dueMs);
      expect(queue.nextMs()).toBe(Math.min(Infinity, ...items.map(({ dueMs }) => dueMs)));
      const taken: number[] = [];
      for (let item = queue.take(nowMs); item !== undefined; item = queue.take(nowMs)) {
        taken.push(item.dueMs);
        item.dueMs = Infinity;
      }
      expect(taken).toEqual(expected.map(({ dueMs }) => dueMs));
    }),
  );
});
