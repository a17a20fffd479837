import {
  API_VERSION,
  compilePolicy,
  formatProblems,
  POLICY_KIND,
  validatePolicy,
  type CompiledPolicy,
} from '@bulwark/policy';
import type { Compile } from './snapshot.js';

export const POLICY_RESOURCES = 'resiliencepolicies';

/** From the JSON a control plane sent to what the engine runs; validated here once more, since versions may differ. */
export const compileResource: Compile<CompiledPolicy> = (resource) => {
  if (resource.name.kind !== POLICY_RESOURCES) {
    return { ok: false, reason: `this agent knows ${POLICY_RESOURCES} only, not ${resource.name.kind}` };
  }
  const object: unknown = JSON.parse(resource.object);
  // The name says what it is; on the wire the object need not repeat it.
  const typed =
    typeof object === 'object' && object !== null && !Array.isArray(object)
      ? { apiVersion: API_VERSION, kind: POLICY_KIND, ...object }
      : object;
  const validation = validatePolicy(typed);
  if (!validation.ok) return { ok: false, reason: formatProblems(validation.problems) };
  const compiled = compilePolicy(validation.policy, {
    uid: resource.uid,
    generation: resource.generation,
    createdAtMs: resource.createdAtMs,
  });
  if (compiled.name !== resource.name.name || compiled.namespace !== resource.name.namespace) {
    return { ok: false, reason: `the object is ${compiled.namespace}/${compiled.name}` };
  }
  return { ok: true, compiled };
};
