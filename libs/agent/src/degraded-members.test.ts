import { describe, expect, it } from 'vitest';
import { DegradedMembers, joinMembers } from './degraded-members.js';

describe('the members of degraded answers', () => {
  it('are handed upward in order, each once, and a comma in a text separates nothing', () => {
    const below = 'last-good;upstream="a, b";reason="failure", static;upstream="c\\"d,e"';
    const members = new DegradedMembers();
    members.add(below);
    members.add('static;upstream="c\\"d,e",simplified;upstream="f"');
    expect(members.list).toBe(`${below}, simplified;upstream="f"`);
    expect(joinMembers(undefined, null, '', ' , ,')).toBeUndefined();
  });

  it('are at most 16 and 4 KiB, whatever a layer below sends', () => {
    const many = Array.from({ length: 40 }, (_, at) => `static;upstream="u${at}"`).join(', ');
    expect(joinMembers(many)?.split(', ')).toHaveLength(16);
    expect(joinMembers(`static;upstream="${'x'.repeat(5_000)}"`)).toBeUndefined();
    const long = Array.from({ length: 10 }, (_, at) => `static;upstream="${at}${'x'.repeat(1_000)}"`);
    expect(joinMembers(...long)?.length).toBeLessThanOrEqual(4_096);
  });

  it('never hold what a header may not, and are found quickly in hostile text', () => {
    expect(joinMembers('static;upstream="never closed, static', 'static')).toBe('static');
    expect(joinMembers('static\r\nset-cookie: a=b')).toBeUndefined();
    const began = performance.now();
    joinMembers('"\\'.repeat(200_000));
    joinMembers(`${'"'.repeat(100_001)},`);
    expect(performance.now() - began).toBeLessThan(100);
  });
});
