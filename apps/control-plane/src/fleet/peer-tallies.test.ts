import { describe, expect, it } from 'vitest';
import type { GenerationCounts, Tally } from '../distribution/policy-tally.js';
import type { CatalogPolicy } from '../policies/policy-catalog.js';
import { policyStatus, type PolicyCounts } from '../policies/policy-status.js';
import type { Members } from './members.js';
import type { Answers, PeerClients } from './peer-clients.js';
import { PeerTallies } from './peer-tallies.js';

const policy = {
  object: { apiVersion: 'v', kind: 'k', metadata: { name: 'pay', namespace: 'shop', generation: 2 } },
  resource: { uid: 'u', generation: 2 },
} as unknown as CatalogPolicy;

function tally(counts: Partial<GenerationCounts>): Tally {
  const whole = {
    uid: 'u',
    generation: 2,
    matched: 5,
    running: 5,
    refused: 0,
    refusal: undefined,
    ...counts,
  };
  return { policies: { 'shop/pay': whole }, services: { 'shop/web': 5 } };
}

function tallies(addresses: readonly string[], answer: () => Answers): PeerTallies {
  const members = { others: () => addresses } as unknown as Members;
  return new PeerTallies(members, { list: () => Promise.resolve(answer()) } as unknown as PeerClients);
}

function distributed(counts: PolicyCounts): string {
  const input = { policy: policy.object, usable: true, counts, shadowedBy: [], former: undefined, now: '' };
  const condition = policyStatus(input).conditions.find(({ type }) => type === 'Distributed');
  return `${condition?.status} ${condition?.reason}: ${condition?.message}`;
}

describe('a policy is called distributed', () => {
  it('when the agents of all replicas have this very generation in force', async () => {
    const peers = tallies(['b'], () => ({ objects: [tally({})], silent: [] }));
    await peers.refresh();
    expect(distributed(peers.counts(tally({}), policy))).toBe('True InForce: 10/10 agents have it in force');
  });

  it('not by what another replica counted of the generation before, or of an object of the same name', async () => {
    for (const former of [{ generation: 1 }, { uid: 'deleted' }]) {
      const peers = tallies(['b'], () => ({ objects: [tally({ ...former, refused: 1 })], silent: [] }));
      await peers.refresh();
      const counts = peers.counts(tally({}), policy);
      expect(counts).toMatchObject({ matched: 10, running: 5, refused: 0 });
      expect(distributed(counts)).toMatch(/^False Distributing: 5\/10/);
    }
  });

  it('not while a replica does not answer, nor before it was asked', async () => {
    const peers = tallies(['b', 'c'], () => ({ objects: [tally({})], silent: ['c'] }));
    expect(distributed(peers.counts(tally({}), policy))).toMatch(
      /^Unknown ReplicasSilent: 2 replicas do not/,
    );
    const before = peers.version;
    await peers.refresh();
    expect(distributed(peers.counts(tally({}), policy))).toMatch(
      /^Unknown ReplicasSilent: one replica does not/,
    );
    expect(peers.version).toBeGreaterThan(before);
  });
});
