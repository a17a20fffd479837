import { resourceId, sameResource } from '@bulwark/protocol';
import type { CatalogPolicy } from '../policies/policy-catalog.js';
import type { PolicyCounts } from '../policies/policy-status.js';
import type { AgentRegistry } from './agent-registry.js';
import type { Distribution } from './distribution.js';

/** What a replica's agents have of the policy as that replica knows it, which may be an older state than the newest. */
export interface GenerationCounts extends Omit<PolicyCounts, 'silentReplicas'> {
  readonly uid: string;
  readonly generation: number;
}

/** Counts of policies by "namespace/name", and of agents by "namespace/service": small enough to be sent each second. */
export interface Tally {
  readonly policies: Readonly<Record<string, GenerationCounts>>;
  readonly services: Readonly<Record<string, number>>;
}

/** Counts what this replica's agents have in force and refused. */
export function tallyOf(registry: AgentRegistry, distribution: Distribution): Tally {
  const policies = new Map<string, { -readonly [K in keyof GenerationCounts]: GenerationCounts[K] }>();
  for (const session of registry.sessions()) {
    for (const { name, uid, generation } of distribution.desired(session).values()) {
      if (name === undefined) continue;
      const key = `${name.namespace}/${name.name}`;
      const none = { uid, generation, matched: 0, running: 0, refused: 0, refusal: undefined };
      const counts = policies.get(key) ?? none;
      policies.set(key, counts);
      counts.matched += 1;
      const id = resourceId(name);
      const held = session.delivery.held.get(id);
      const refused = session.delivery.refused.get(id);
      if (held?.uid === uid && held.generation === generation) counts.running += 1;
      else if (refused?.uid === uid && refused.generation === generation) {
        counts.refused += 1;
        counts.refusal ??= refused.reason;
      }
    }
  }
  return { policies: Object.fromEntries(policies), services: Object.fromEntries(registry.serviceCounts()) };
}

/** What was counted of another generation than this one says who is concerned, and nothing of who has this one. */
export function countsIn(
  tallies: readonly Tally[],
  policy: CatalogPolicy,
): Omit<PolicyCounts, 'silentReplicas'> {
  const { namespace, name } = policy.object.metadata;
  let [matched, running, refused] = [0, 0, 0];
  let refusal: string | undefined;
  for (const { policies } of tallies) {
    const counts = policies[`${namespace}/${name}`];
    if (counts === undefined) continue;
    matched += counts.matched;
    if (!sameResource(counts, policy.resource)) continue;
    running += counts.running;
    refused += counts.refused;
    refusal ??= counts.refusal;
  }
  return { matched, running, refused, refusal };
}
