import { Resource, resourceId, type SnapshotVersion } from '@bulwark/protocol';
import { describe, expect, it } from 'vitest';
import { AgentDelivery } from './agent-delivery.js';

const resource = (name: string, generation: number): Resource =>
  Resource.fromPartial({
    name: { kind: 'policies', namespace: 'shop', name },
    uid: `uid-${name}`,
    generation,
  });
const wish = (...resources: readonly Resource[]): ReadonlyMap<string, Resource> =>
  new Map(resources.flatMap((one) => (one.name ? [[resourceId(one.name), one] as const] : [])));

/** Takes the plan there is and answers it: everything accepted. */
function deliver(
  delivery: AgentDelivery,
  desired: ReadonlyMap<string, Resource>,
  version: SnapshotVersion,
): ReturnType<AgentDelivery['plan']> {
  const plan = delivery.plan(desired, version);
  if (plan === undefined) return undefined;
  delivery.sending(plan, 'n', 0);
  const resources = plan.resources.map(({ name, generation }) => ({
    name,
    generation,
    accepted: true,
    reason: '',
  }));
  delivery.answered({ nonce: 'n', version, resources }, 1);
  return plan;
}

describe('what an agent is sent after the store went back', () => {
  it('is nothing while the era is the same: the agent would refuse it and never be sent it again', () => {
    const delivery = new AgentDelivery({ held: undefined, resources: [] });
    deliver(delivery, wish(resource('pay', 4)), { era: 1, revision: 40 });
    expect(delivery.plan(wish(resource('pay', 3)), { era: 1, revision: 30 })).toBeUndefined();
    expect(delivery.plan(wish(), { era: 1, revision: 30 })).toBeUndefined();
  });

  it('is everything in the next era, also what has the same generation and may be another object', () => {
    const delivery = new AgentDelivery({ held: undefined, resources: [] });
    deliver(delivery, wish(resource('pay', 4), resource('left', 1)), { era: 1, revision: 40 });
    const plan = deliver(delivery, wish(resource('pay', 4)), { era: 2, revision: 31 });
    expect(plan).toMatchObject({ full: true, resources: [{ generation: 4 }] });
    expect([...delivery.held.keys()]).toEqual(['policies/shop/pay']);
    expect(delivery.plan(wish(resource('pay', 4)), { era: 2, revision: 31 })).toBeUndefined();
  });

  it('is the empty state, too, when nothing is left', () => {
    const delivery = new AgentDelivery({ held: undefined, resources: [] });
    deliver(delivery, wish(resource('pay', 4)), { era: 1, revision: 40 });
    expect(deliver(delivery, wish(), { era: 2, revision: 31 })).toMatchObject({ full: true, resources: [] });
    expect(delivery.held.size).toBe(0);
  });

  it('is never older than what it brought along from another replica', () => {
    const held = { era: 1, revision: 40 };
    const delivery = new AgentDelivery({ held, resources: [] });
    expect(delivery.plan(wish(), { era: 1, revision: 39 })).toBeUndefined();
    expect(delivery.plan(wish(), held)).toMatchObject({ full: false });
  });
});
