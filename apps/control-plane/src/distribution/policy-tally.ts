import { resourceId } from '@bulwark/protocol';
import type { CatalogPolicy } from '../policies/policy-catalog.js';
import type { PolicyCounts } from '../policies/policy-status.js';
import type { AgentRegistry } from './agent-registry.js';
import type { Distribution } from './distribution.js';

/** Counts of policies by "namespace/name", and of agents by "namespace/service": small enough to be sent each second. */
export interface Tally {
  readonly policies: Readonly<Record<string, PolicyCounts>>;
  readonly services: Readonly<Record<string, number>>;
}

export const NO_COUNTS: PolicyCounts = { matched: 0, running: 0, refused: 0, refusal: undefined };
export const EMPTY_TALLY: Tally = { policies: {}, services: {} };

/** Counts what this replica's agents have in force and refused. */
export function tallyOf(registry: AgentRegistry, distribution: Distribution): Tally {
  const policies = new Map<
    string,
    { matched: number; running: number; refused: number; refusal: string | undefined }
  >();
  for (const session of registry.sessions()) {
    for (const { name, uid, generation } of distribution.desired(session).values()) {
      if (name === undefined) continue;
      const key = `${name.namespace}/${name.name}`;
      const counts = policies.get(key) ?? { ...NO_COUNTS };
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

export function countsIn(tallies: readonly Tally[], policy: CatalogPolicy): PolicyCounts {
  const { namespace, name } = policy.object.metadata;
  return tallies
    .flatMap((tally) => tally.policies[`${namespace}/${name}`] ?? [])
    .reduce(
      (sum, one) => ({
        matched: sum.matched + one.matched,
        running: sum.running + one.running,
        refused: sum.refused + one.refused,
        refusal: sum.refusal ?? one.refusal,
      }),
      NO_COUNTS,
    );
}
