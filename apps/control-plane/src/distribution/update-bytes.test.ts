import { Resource } from '@bulwark/protocol';
import { describe, expect, it } from 'vitest';
import type { UpdatePlan } from './agent-delivery.js';
import { UpdateEncoder } from './update-bytes.js';

const MIB = 1024 * 1024;

function plan(revision: number, mebibytes = 0): UpdatePlan {
  const name = { kind: 'policies', namespace: 'shop', name: 'pay' };
  const object = Buffer.alloc(mebibytes * MIB);
  const resource = Resource.fromPartial({ name, uid: 'u', generation: 1, object });
  return { version: { era: 1, revision }, full: true, resources: [resource], removed: [] };
}

describe('the bytes of updates', () => {
  it('are made once for all agents that need the same', () => {
    const encoder = new UpdateEncoder('x');
    expect(encoder.encode(plan(1), 5)).toBe(encoder.encode(plan(1), 5));
    expect(encoder.encode(plan(1), 6)).not.toBe(encoder.encode(plan(1), 5));
  });

  it('are kept in a bounded amount, however large each is', () => {
    const encoder = new UpdateEncoder('x');
    for (let revision = 1; revision <= 30; revision += 1) encoder.encode(plan(revision, 5), 1);
    expect(encoder.size).toBeLessThanOrEqual(64 * MIB);
    expect(encoder.encode(plan(30, 5), 1)).toBe(encoder.encode(plan(30, 5), 1));
  });

  it('larger than all that may be kept are still shared by those who come at once', () => {
    const encoder = new UpdateEncoder('x');
    encoder.encode(plan(1), 1);
    const large = encoder.encode(plan(2, 65), 1);
    expect(encoder.encode(plan(2, 65), 1)).toBe(large);
    encoder.encode(plan(3), 1);
    expect(encoder.size).toBeLessThan(MIB);
  });
});
