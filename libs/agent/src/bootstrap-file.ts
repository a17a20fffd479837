import { readPolicies, type PolicySource } from '@bulwark/policy';
import { readFile } from 'node:fs/promises';
import { ArgumentError } from './agent-error.js';
import { compileResource, POLICY_RESOURCES } from './compile-resource.js';
import { isObject } from './option-shapes.js';
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
    const sources = typeof from === 'string' ? [await fileSource(from)] : from.map(documentSource);
    const resources = new Map<string, HeldResource<CompiledPolicy>>();
    for (const { policy } of await readPolicies(sources, { namespace })) {
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

async function fileSource(path: string): Promise<PolicySource> {
  return { name: path, text: await readFile(path, 'utf8') };
}

/** Its place in the array and its own name stand in every problem it has. */
function documentSource(document: unknown, index: number): PolicySource {
  const name = nameOf(document);
  const place = name === undefined ? `bootstrap[${index}]` : `bootstrap[${index}] ${name}`;
  const text: string | undefined = JSON.stringify(document);
  if (text === undefined) throw new Error(`${place} is no policy document`);
  return { name: place, text };
}

function nameOf(document: unknown): string | undefined {
  const metadata = isObject(document) ? document['metadata'] : undefined;
  const name = isObject(metadata) ? metadata['name'] : undefined;
  return typeof name === 'string' ? name : undefined;
}
