import {
  compareSnapshotVersions,
  formatSnapshotVersion,
  resourceId,
  sameResource,
  type Resource,
  type ResourceName,
  type ResourceStatus,
  type SnapshotVersion,
  type Update,
} from '@bulwark/protocol';

/** A resource in force, with what it compiled to. */
export interface HeldResource<T> {
  readonly name: ResourceName;
  readonly uid: string;
  readonly generation: number;
  readonly createdAtMs: number;
  /** The object's JSON text, as it came. */
  readonly object: string;
  readonly compiled: T;
}

/** Everything in force. Never changed in place: an update makes a new one, which is then swapped in. */
export interface Snapshot<T> {
  /** Absent = nothing came from a control plane yet (bootstrap file, or nothing). */
  readonly version: SnapshotVersion | undefined;
  readonly resources: ReadonlyMap<string, HeldResource<T>>;
}

export type Compile<T> = (
  resource: Omit<HeldResource<T>, 'compiled'>,
) => { readonly ok: true; readonly compiled: T } | { readonly ok: false; readonly reason: string };

export interface Applied<T> {
  readonly snapshot: Snapshot<T>;
  readonly statuses: readonly ResourceStatus[];
  /** Set when the whole update was older than what is in force; the snapshot is the former one. */
  readonly stale: boolean;
}

const MAX_REASON = 1_024;

export const emptySnapshot: Snapshot<never> = { version: undefined, resources: new Map() };

/**
 * What holds after an update. A resource that cannot be used is refused with a reason and its former generation
 * stays; the others are taken. An update older than what is in force is refused whole.
 */
export function applyUpdate<T>(former: Snapshot<T>, update: Update, compile: Compile<T>): Applied<T> {
  if (compareSnapshotVersions(update.version, former.version) < 0) {
    const reason = `older (${formatSnapshotVersion(update.version)}) than what is in force (${formatSnapshotVersion(former.version)})`;
    const statuses = update.resources.map((resource) => refusal(resource, reason));
    return { snapshot: former, statuses, stale: true };
  }
  const resources = update.full ? new Map<string, HeldResource<T>>() : new Map(former.resources);
  for (const name of update.removed) resources.delete(resourceId(name));
  const statuses: ResourceStatus[] = [];
  for (const resource of update.resources) {
    if (resource.name === undefined) continue;
    const id = resourceId(resource.name);
    const old = former.resources.get(id);
    const taken = take(resource, old, compile);
    if (typeof taken === 'string') {
      statuses.push(refusal(resource, taken));
      if (old !== undefined) resources.set(id, old);
    } else {
      statuses.push({ name: resource.name, generation: resource.generation, accepted: true, reason: '' });
      resources.set(id, taken);
    }
  }
  return { snapshot: { version: update.version, resources }, statuses, stale: false };
}

/** The held form, or why it cannot be used. */
function take<T>(
  resource: Resource,
  old: HeldResource<T> | undefined,
  compile: Compile<T>,
): HeldResource<T> | string {
  if (resource.name === undefined) return 'no name';
  const object = resource.object.toString('utf8');
  if (old !== undefined && sameResource(old, resource) && old.object === object) return old;
  const raw = {
    name: resource.name,
    uid: resource.uid,
    generation: resource.generation,
    createdAtMs: resource.createdAtMs,
    object,
  };
  const compiled = compileSafely(raw, compile);
  return compiled.ok ? { ...raw, compiled: compiled.compiled } : compiled.reason;
}

/** A defect in validation must not take the stream down with it: it refuses this one resource. */
export function compileSafely<T>(raw: Omit<HeldResource<T>, 'compiled'>, compile: Compile<T>) {
  try {
    return compile(raw);
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) } as const;
  }
}

function refusal(resource: Resource, reason: string): ResourceStatus {
  const bounded = reason.length > MAX_REASON ? `${reason.slice(0, MAX_REASON - 1)}…` : reason;
  return { name: resource.name, generation: resource.generation, accepted: false, reason: bounded };
}
