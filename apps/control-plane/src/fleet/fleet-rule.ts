import type { FleetRule } from '@bulwark/fleet';
import type { CatalogPolicy } from '../policies/policy-catalog.js';

/**
 * What the decider is told of a policy; undefined when it has no breaker. Of scope Instance too: those it only counts,
 * for people.
 */
export function fleetRule(policy: CatalogPolicy | undefined): FleetRule | undefined {
  const settings = policy?.compiled?.guard.breaker;
  if (policy?.compiled === undefined || settings === undefined) return undefined;
  return { namespace: policy.compiled.namespace, policy: policy.compiled.name, settings };
}
