import { compilePolicy, shadowersOf, validatePolicy, type CompiledPolicy } from '@bulwark/policy';
import { Resource } from '@bulwark/protocol';
import type { Entry } from '@bulwark/store';
import type { Logger } from '@bulwark/telemetry';
import type { MirrorChange, StoreMirror } from '../index/store-mirror.js';
import type { ApiObject } from '../objects/api-object.js';
import { decodeObject } from '../objects/object-store.js';
import { POLICIES } from '../objects/policy-kind.js';

/** One stored policy, ready to be shown, matched and sent. */
export interface CatalogPolicy {
  /** As stored, with its resourceVersion and without a status. */
  readonly object: ApiObject;
  /** Undefined when this version of the server cannot make sense of it: then it is shown, and sent to nobody. */
  readonly compiled: CompiledPolicy | undefined;
  /** What agents get: the same for all of them, made once. */
  readonly resource: Resource;
}

export interface CatalogChange {
  readonly namespace: string;
  readonly name: string;
  readonly policy: CatalogPolicy | undefined;
  readonly previous: CatalogPolicy | undefined;
  readonly revision: number;
}

export const POLICY_PREFIX = `/bulwark/objects/${POLICIES}/`;
const NONE: ReadonlyMap<string, CatalogPolicy> = new Map();

/** All policies by namespace and name, compiled, as the store's mirror has them. */
export class PolicyCatalog {
  private readonly namespaces = new Map<string, Map<string, CatalogPolicy>>();
  private readonly listeners: ((changes: readonly CatalogChange[]) => void)[] = [];

  constructor(
    private readonly mirror: StoreMirror,
    private readonly logger: Logger,
  ) {
    mirror.listen({ changed: (changes) => this.take(changes) });
  }

  /** Nothing is said to anyone before this is true. */
  get loaded(): boolean {
    return this.mirror.loaded;
  }

  /** Store revision the catalog reflects. */
  get revision(): number {
    return this.mirror.revision;
  }

  of(namespace: string): ReadonlyMap<string, CatalogPolicy> {
    return this.namespaces.get(namespace) ?? NONE;
  }

  /** Namespaces that have a policy. */
  names(): IterableIterator<string> {
    return this.namespaces.keys();
  }

  *all(): Generator<CatalogPolicy> {
    for (const policies of this.namespaces.values()) yield* policies.values();
  }

  /** Called once a store revision, after the catalog holds all of it. */
  listen(listener: (changes: readonly CatalogChange[]) => void): void {
    this.listeners.push(listener);
  }

  /** Names of the policies that take every call from this one, as if it were stored already. */
  shadowedBy(object: ApiObject): readonly string[] {
    return this.winnersOver(compiled(object));
  }

  /** Names of the policies that take every call from this one. */
  winnersOver(candidate: CompiledPolicy | undefined): readonly string[] {
    if (candidate === undefined) return [];
    const others = [...this.of(candidate.namespace).values()].flatMap((policy) => policy.compiled ?? []);
    const rivals = others.filter(({ name }) => name !== candidate.name);
    return shadowersOf(candidate, rivals).map(({ name }) => name);
  }

  private take(changes: readonly MirrorChange[]): void {
    const told: CatalogChange[] = [];
    for (const { key, entry, revision } of changes) {
      const [namespace = '', name = ''] = key.slice(POLICY_PREFIX.length).split('/');
      const policies = this.namespaces.get(namespace) ?? new Map<string, CatalogPolicy>();
      const previous = policies.get(name);
      const policy = entry === undefined ? undefined : this.decode(entry, { namespace, name });
      if (policy === undefined) policies.delete(name);
      else policies.set(name, policy);
      if (policies.size === 0) this.namespaces.delete(namespace);
      else this.namespaces.set(namespace, policies);
      told.push({ namespace, name, policy, previous, revision });
    }
    for (const listener of this.listeners) listener(told);
  }

  private decode(entry: Entry, place: { namespace: string; name: string }): CatalogPolicy | undefined {
    try {
      const object = decodeObject(entry);
      const { namespace, name } = object.metadata;
      // Under another name it could be shown and sent, and never be taken away again.
      if (namespace !== place.namespace || name !== place.name)
        throw new Error('it has the name of another key');
      return { object, compiled: compiled(object), resource: resourceOf(object) };
    } catch (error) {
      this.logger.error({ key: entry.key, err: error }, 'a stored policy cannot be read; it is left out');
      return undefined;
    }
  }
}

function compiled(object: ApiObject): CompiledPolicy | undefined {
  const validation = validatePolicy(object);
  return validation.ok ? compilePolicy(validation.policy, identity(object)) : undefined;
}

function identity({ metadata }: ApiObject): { uid: string; generation: number; createdAtMs: number } {
  const createdAtMs = Date.parse(metadata.creationTimestamp ?? '') || 0;
  return { uid: metadata.uid ?? '', generation: metadata.generation ?? 1, createdAtMs };
}

/** Metadata that matters to agents, and spec. */
function resourceOf(object: ApiObject): Resource {
  const { name, namespace, uid, generation, creationTimestamp, labels, annotations } = object.metadata;
  const sent = {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { name, namespace, uid, generation, creationTimestamp, labels, annotations },
    spec: object.spec,
  };
  return Resource.create({
    name: { kind: POLICIES, namespace, name },
    ...identity(object),
    object: Buffer.from(JSON.stringify(sent)),
  });
}
