import type { FleetRule } from '@bulwark/fleet';
import type { CatalogPolicy } from '../policies/policy-catalog.js';

/** What the decider is told of a policy; undefined when its breakers are each agent's own business. */
export function fleetRule(policy: CatalogPolicy | undefined): FleetRule | undefined {
  const settings = policy?.compiled?.guard.breaker;
  if (policy?.compiled === undefined || settings === undefined || settings.scope === 'Instance')
    return undefined;
  return { namespace: policy.compiled.namespace, policy: policy.compiled.name, settings };
}
