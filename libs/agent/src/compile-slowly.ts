import { resourceId, type Resource } from '@bulwark/protocol';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { compileSafely, type Compile } from './snapshot.js';

/** Calls of the service must not wait behind a snapshot of thousands of policies: about 0.1 ms each. */
const SLICE_MS = 4;

/**
 * Compiles the resources of an update with pauses for other work. The answer is a `Compile` that knows their results,
 * so that the update itself can be applied in one step.
 */
export async function compileSlowly<T>(
  resources: readonly Resource[],
  compile: Compile<T>,
  nowMs: () => number,
): Promise<Compile<T>> {
  const results = new Map<string, ReturnType<Compile<T>>>();
  let sliceBeganMs = nowMs();
  for (const { name, uid, generation, createdAtMs, object } of resources) {
    if (name === undefined) continue;
    const raw = { name, uid, generation, createdAtMs, object: object.toString('utf8') };
    results.set(resourceId(name), compileSafely(raw, compile));
    if (nowMs() - sliceBeganMs < SLICE_MS) continue;
    await nextTurn();
    sliceBeganMs = nowMs();
  }
  return (raw) => results.get(resourceId(raw.name)) ?? compileSafely(raw, compile);
}
