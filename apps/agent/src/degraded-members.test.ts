import { describe, expect, it } from 'vitest';
import { DegradedMembers, splitMembers } from './degraded-members.js';

describe('the members of Bulwark-Degraded', () => {
  it('are told apart where a string has commas, quotes and backslashes of its own', () => {
    const first = 'last-good;upstream="a, \\"b\\", \\\\";reason="failure";age=3';
    expect(splitMembers(`${first}, static;upstream="c" ,,`)).toEqual([first, 'static;upstream="c"']);
    expect(splitMembers('')).toEqual([]);
    expect(splitMembers('static;upstream="never closed, static')).toHaveLength(1);
  });

  it('are told upward each once, in order, and no more than a header can hold', () => {
    const members = new DegradedMembers();
    expect(members.list).toBeUndefined();
    members.add(undefined);
    members.add('static;upstream="a", last-good;upstream="b"');
    members.add('last-good;upstream="b", static;upstream="c"');
    expect(members.list).toBe('static;upstream="a", last-good;upstream="b", static;upstream="c"');
    for (let count = 0; count < 1_000; count += 1) members.add(`static;upstream="service-${count}"`);
    expect(members.list?.length).toBeLessThanOrEqual(4_096);
  });
});
