import { readPolicies } from '@bulwark/policy';
import { readFile } from 'node:fs/promises';
import { ArgumentError } from './agent-error.js';
import { compileResource, POLICY_RESOURCES } from './compile-resource.js';
import { compileSafely, type HeldResource, type Snapshot } from './snapshot.js';
import type { CompiledPolicy } from '@bulwark/policy';

/**
 * Policies for a start with neither disk nor control plane: a file, or documents. They belong to no version, so that
 * the first snapshot of a control plane replaces them. Throws `ArgumentError` with every problem when they cannot be used.
 */
export async function readBootstrap(
  from: string | readonly object[],
  namespace: string,
): Promise<Snapshot<CompiledPolicy>> {
  const source = typeof from === 'string' ? from : 'documents';
  try {
    const text =
      typeof from === 'string'
        ? await readFile(from, 'utf8')
        : from.map((document) => JSON.stringify(document)).join('\n---\n');
    const resources = new Map<string, HeldResource<CompiledPolicy>>();
    for (const { policy } of await readPolicies([{ name: source, text }], { namespace })) {
      const object = { ...policy, metadata: { namespace, ...policy.metadata } };
      const name = {
        kind: POLICY_RESOURCES,
        namespace: object.metadata.namespace,
        name: policy.metadata.name,
      };
      // Policies of other namespaces may stand in the same file; they are not for this agent.
      if (name.namespace !== namespace) continue;
      const raw = { name, uid: '', generation: 0, createdAtMs: 0, object: JSON.stringify(object) };
      const compiled = compileSafely(raw, compileResource);
      if (!compiled.ok) throw new Error(compiled.reason);
      resources.set(`${name.kind}/${name.namespace}/${name.name}`, { ...raw, compiled: compiled.compiled });
    }
    return { version: undefined, resources };
  } catch (error) {
    throw new ArgumentError([
      `bootstrap ${source}: ${error instanceof Error ? error.message : String(error)}`,
    ]);
  }
}
