import { describe, expect, it } from 'vitest';
import { agentId, compareSnapshotVersions, parseAgentId } from './index.js';

describe('the order of snapshot versions', () => {
  it('puts the era before the revision, and nothing before everything', () => {
    expect(compareSnapshotVersions({ era: 2, revision: 1 }, { era: 1, revision: 99 })).toBeGreaterThan(0);
    expect(compareSnapshotVersions({ era: 1, revision: 5 }, { era: 1, revision: 6 })).toBeLessThan(0);
    expect(compareSnapshotVersions({ era: 1, revision: 5 }, { era: 1, revision: 5 })).toBe(0);
    expect(compareSnapshotVersions(undefined, { era: 0, revision: 0 })).toBeLessThan(0);
    expect(compareSnapshotVersions(undefined, undefined)).toBe(0);
  });
});

describe('the name of an agent', () => {
  it('goes to text and back, and text of another shape is refused', () => {
    const name = { namespace: 'shop', service: 'storefront', instance: 'a-1' };
    expect(parseAgentId(agentId(name))).toEqual(name);
    expect(parseAgentId('shop/storefront')).toBeUndefined();
    expect(parseAgentId('shop//a')).toBeUndefined();
    expect(parseAgentId('a/b/c/d')).toBeUndefined();
  });
});
