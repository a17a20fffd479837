import type { ApiObject } from '../client/api-client.js';
import { CommandError } from '../command-error.js';
import type { LoadedPolicy } from './load.js';
import { isMap, sameJson, sortedKeys, threeWayPatch, type JsonMap } from './merge.js';

/** kubectl's own, so that both commands can be used on the same policies. */
export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** Written by the server; a document that was read from it may be applied again. */
const SERVER_METADATA: ReadonlySet<string> = new Set([
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'managedFields',
  'selfLink',
]);

export type Plan =
  | { readonly kind: 'create'; readonly body: JsonMap }
  /** `patch` carries the version it was computed from: a write between is noticed, not mixed with. */
  | { readonly kind: 'patch'; readonly patch: JsonMap }
  | { readonly kind: 'unchanged'; readonly object: ApiObject };

export interface PlanOptions {
  /** Whether what is applied is remembered in the object, for the next apply. `diff` does without. */
  readonly remember: boolean;
}

/** What an apply of `loaded` has to send, `live` being what is there now. Pure. */
export function planOf(loaded: LoadedPolicy, live: ApiObject | undefined, { remember }: PlanOptions): Plan {
  const written = configurationOf(loaded.written, loaded.namespace);
  if (live === undefined) {
    const body = configurationOf(loaded.policy, loaded.namespace);
    return { kind: 'create', body: remember ? remembering(body, written) : body };
  }
  refuseStale(loaded, live);
  const former = lastApplied(live);
  // The same memory in another spelling (kubectl's) is left as it is.
  const wanted = remember && !sameJson(former, written) ? remembering(written) : written;
  const patch = threeWayPatch(former ?? {}, sharingMaps(wanted, live), live);
  if (Object.keys(patch).length === 0) return { kind: 'unchanged', object: live };
  const metadata = isMap(patch['metadata']) ? patch['metadata'] : {};
  return {
    kind: 'patch',
    patch: { ...patch, metadata: { ...metadata, resourceVersion: live.metadata.resourceVersion } },
  };
}

/** What was applied last, as far as the object knows. Undefined = it was never applied, or the memory is spoilt. */
export function lastApplied(live: ApiObject): JsonMap | undefined {
  const text = live.metadata.annotations?.[LAST_APPLIED];
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isMap(value) ? configurationOf(value, live.metadata.namespace ?? '') : undefined;
  } catch {
    return undefined;
  }
}

/** The part of a document that people decide about. */
function configurationOf(document: JsonMap, namespace: string): JsonMap {
  const { metadata } = document;
  const rest = Object.fromEntries(Object.entries(document).filter(([key]) => key !== 'status'));
  const kept = Object.entries(isMap(metadata) ? metadata : {}).flatMap(([key, value]) => {
    if (SERVER_METADATA.has(key)) return [];
    if (key !== 'annotations' || !isMap(value)) return [[key, value]];
    const own = Object.entries(value).filter(([name]) => name !== LAST_APPLIED);
    return own.length === 0 ? [] : [[key, Object.fromEntries(own)]];
  });
  return { ...rest, metadata: { ...Object.fromEntries(kept), namespace } };
}

/** Labels and annotations have several writers: a document without any takes away its own former ones, not theirs. */
function sharingMaps(wanted: JsonMap, live: ApiObject): JsonMap {
  const metadata = isMap(wanted['metadata']) ? wanted['metadata'] : {};
  const shared = (['labels', 'annotations'] as const).filter(
    (key) => live.metadata[key] !== undefined && (metadata[key] ?? null) === null,
  );
  return { ...wanted, metadata: { ...metadata, ...Object.fromEntries(shared.map((key) => [key, {}])) } };
}

function remembering(body: JsonMap, written: JsonMap = body): JsonMap {
  const metadata = isMap(body['metadata']) ? body['metadata'] : {};
  const annotations = isMap(metadata['annotations']) ? metadata['annotations'] : {};
  const memory = `${JSON.stringify(sortedKeys(written))}\n`;
  return { ...body, metadata: { ...metadata, annotations: { ...annotations, [LAST_APPLIED]: memory } } };
}

/** A document that names the version it was made from must not overwrite a newer one. */
function refuseStale({ written, name, place }: LoadedPolicy, live: ApiObject): void {
  const version = isMap(written['metadata']) ? written['metadata']['resourceVersion'] : undefined;
  if (version === undefined || version === null || version === live.metadata.resourceVersion) return;
  throw new CommandError(
    `Error from server (Conflict): Operation cannot be fulfilled on resiliencepolicies.bulwark.dev "${name}": ` +
      `${place} was made from version ${JSON.stringify(version)}, and it is now at ${live.metadata.resourceVersion}`,
    {
      hint: 'Take metadata.resourceVersion out of the document, or start again from: bulwark get policy NAME -o yaml',
    },
  );
}
