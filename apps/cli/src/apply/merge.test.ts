import { describe, expect, it } from 'vitest';
import { threeWayPatch } from './merge.js';

describe('three-way patches', () => {
  it.each([
    ['nothing to do', { a: 1 }, { a: 1 }, { a: 1, other: 2 }, {}],
    ['a changed field', { a: 1 }, { a: 2 }, { a: 1 }, { a: 2 }],
    ['a field that someone else changed comes back', { a: 1 }, { a: 1 }, { a: 5 }, { a: 1 }],
    ['a field that is no more asked for goes', { a: 1, b: 2 }, { a: 1 }, { a: 1, b: 2 }, { b: null }],
    ['a field that others added stays', { a: 1 }, { a: 1 }, { a: 1, b: 2 }, {}],
    ['a field that went already needs nothing', { a: 1, b: 2 }, { a: 1 }, { a: 1 }, {}],
    ['a null removes, whoever added it', {}, { b: null }, { b: 2 }, { b: null }],
    ['a null for what is not there needs nothing', { b: 1 }, { b: null }, {}, {}],
    ['a section goes whole', { s: { x: 1 } }, {}, { s: { x: 1, y: 2 } }, { s: null }],
    [
      'a field deep inside goes alone',
      { s: { x: 1, y: 2 } },
      { s: { x: 1 } },
      { s: { x: 1, y: 2, z: 3 } },
      { s: { y: null } },
    ],
    [
      'a new section comes, an empty one too',
      {},
      { s: {}, t: { x: 1, n: null } },
      {},
      { s: {}, t: { x: 1 } },
    ],
    ['lists are replaced whole', { l: [1, 2] }, { l: [2] }, { l: [1, 2] }, { l: [2] }],
    ['the order of keys is no difference', {}, { l: [{ a: 1, b: 2 }] }, { l: [{ b: 2, a: 1 }] }, {}],
    ['a list becomes a map', { v: [1] }, { v: { calls: 5 } }, { v: [1] }, { v: { calls: 5 } }],
  ])('%s', (_, original, modified, current, patch) => {
    expect(threeWayPatch(original, modified, current)).toEqual(patch);
  });
});
