import type { ResourceName, SnapshotVersion } from './generated/bulwark/v1/agent.js';

/** Negative when `a` is older than `b`, 0 when equal, positive when newer. Absent is older than everything. */
export function compareSnapshotVersions(
  a: SnapshotVersion | undefined,
  b: SnapshotVersion | undefined,
): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  return a.era - b.era || a.revision - b.revision;
}

/** For people and logs: "era 1, revision 42". */
export function formatSnapshotVersion(version: SnapshotVersion | undefined): string {
  return version === undefined ? 'none' : `era ${version.era}, revision ${version.revision}`;
}

/** One text per resource: names hold no "/", so it is unambiguous. */
export function resourceId(name: ResourceName): string {
  return `${name.kind}/${name.namespace}/${name.name}`;
}

/** Whether two descriptions mean the same object in the same state; a re-created object has another uid. */
export function sameResource(
  a: { readonly uid: string; readonly generation: number },
  b: { readonly uid: string; readonly generation: number },
): boolean {
  return a.uid === b.uid && a.generation === b.generation;
}
