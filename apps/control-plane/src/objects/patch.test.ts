import { describe, expect, it } from 'vitest';
import { jsonEquals, parseJson } from './json-value.js';
import { mergePatch, parsePatch } from './patch.js';

describe('a merge patch', () => {
  it('merges maps, replaces lists whole and removes with null', () => {
    const target = { a: { b: 1, c: [1, 2] }, d: 1 };
    expect(mergePatch(target, { a: { c: [3], e: 2 }, d: null })).toEqual({ a: { b: 1, c: [3], e: 2 } });
    expect(target).toEqual({ a: { b: 1, c: [1, 2] }, d: 1 });
  });

  it('drops nulls of a map that is new', () => {
    expect(mergePatch({}, { a: { b: null, c: 1 } })).toEqual({ a: { c: 1 } });
  });
});

describe('a JSON patch', () => {
  const patch = (operations: unknown) => parsePatch('application/json-patch+json', operations);

  it('is applied in order to a copy', () => {
    const target = { list: [1] };
    const result = patch([
      { op: 'add', path: '/list/-', value: 2 },
      { op: 'replace', path: '/list/0', value: 9 },
    ])(target);
    expect(result).toEqual({ list: [9, 2] });
    expect(target).toEqual({ list: [1] });
  });

  it('says which operation failed', () => {
    expect(() => patch([{ op: 'test', path: '/a', value: 2 }])({ a: 1 })).toThrow('operation 0 (test /a)');
    expect(() => patch([{ op: 'remove', path: '/nothing' }])({ a: 1 })).toThrow('cannot be applied');
    expect(() => patch({})).toThrow('list of operations');
    expect(() => patch([{ op: 'add' }])).toThrow('operation 0');
  });

  it('cannot make an object large by copying it into itself', () => {
    const operations = Array.from({ length: 60 }, (_, index) => ({
      op: 'copy',
      from: '/spec',
      path: `/spec/c${index}`,
    }));
    const fromMs = performance.now();
    expect(() => patch(operations)({ spec: { a: 'x'.repeat(100) } })).toThrow('copies more than');
    expect(performance.now() - fromMs).toBeLessThan(2_000);
    expect(patch(operations.slice(0, 3))({ spec: {} })).toMatchObject({ spec: { c2: { c1: { c0: {} } } } });
    expect(() => patch([{ op: 'copy', from: '/nowhere', path: '/a' }])({})).toThrow('operation 0 (copy /a)');
  });

  it('cannot nest an object without end', () => {
    const operations = Array.from({ length: 100 }, (_, index) => ({
      op: 'add',
      path: '/a'.repeat(index + 1),
      value: {},
    }));
    expect(() => patch(operations)({})).toThrow('64 levels');
  });

  it('cannot reach a prototype', () => {
    const operations = [{ op: 'add', path: '/__proto__/polluted', value: true }];
    expect(() => patch(operations)({})).toThrow();
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('other patch types', () => {
  it('are refused as unsupported', () => {
    expect(() => parsePatch('application/strategic-merge-patch+json', {})).toThrow('accepted media types');
  });
});

describe('a JSON body', () => {
  it.each(['{"__proto__": {}}', '{"a": [{"constructor": 1}]}', '{"a":', '', '{"a": 1} x'])(
    '%s is refused',
    (text) => {
      expect(() => parseJson(Buffer.from(text))).toThrow();
    },
  );

  it('nested too deep, or not UTF-8, is refused', () => {
    expect(() => parseJson(Buffer.from('['.repeat(100) + ']'.repeat(100)))).toThrow('64 levels');
    expect(() => parseJson(Buffer.from([0x22, 0xff, 0x22]))).toThrow('UTF-8');
  });

  it('equals another whatever the order of its keys', () => {
    expect(jsonEquals({ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1 })).toBe(true);
    expect(jsonEquals({ a: 1 }, { a: 1, b: 2 })).toBe(false);
    expect(jsonEquals([1, 2], [2, 1])).toBe(false);
  });
});
