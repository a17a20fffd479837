import { shadowed } from '@bulwark/policy';
import type { ObjectCollection } from '../index/object-collection.js';
import type { StoreMirror } from '../index/store-mirror.js';
import type { ApiObject } from '../objects/api-object.js';
import { jsonEquals } from '../objects/json-value.js';
import type { CatalogChange, CatalogPolicy, PolicyCatalog } from './policy-catalog.js';
import { policyStatus, type PolicyCounts, type PolicyStatus } from './policy-status.js';

export interface PolicyObjectsOptions {
  readonly mirror: StoreMirror;
  readonly catalog: PolicyCatalog;
  readonly collection: ObjectCollection;
  counts(policy: CatalogPolicy): PolicyCounts;
  now(): Date;
}

/**
 * Keeps the collection of policies that lists and watches are served from: the stored objects, with the computed
 * status laid over them. The status is not stored; every replica computes it from what all replicas' agents said.
 */
export class PolicyObjects {
  constructor(private readonly options: PolicyObjectsOptions) {
    const { mirror, catalog, collection } = options;
    catalog.listen((changes) => this.take(changes));
    mirror.listen({
      gap: (revision) => collection.forgetHistory(revision),
      changed: () => collection.advance(mirror.revision),
    });
  }

  /** The stored object with the status of this moment. */
  withStatus(object: ApiObject): ApiObject {
    const { namespace, name, resourceVersion } = object.metadata;
    const policy = this.options.catalog.of(namespace).get(name);
    if (policy === undefined || policy.object.metadata.resourceVersion !== resourceVersion) return object;
    return { ...object, status: this.status(policy, this.shadowings(namespace)) };
  }

  /** Computes every status anew; watchers see those that changed. Called about once a second. */
  refresh(): void {
    const shadowings = new Map<string, Map<string, readonly string[]>>();
    for (const policy of this.options.catalog.all()) {
      const { namespace } = policy.object.metadata;
      const inNamespace = shadowings.get(namespace) ?? this.shadowings(namespace);
      shadowings.set(namespace, inNamespace);
      this.refreshOne(policy, inNamespace);
    }
  }

  private refreshOne(policy: CatalogPolicy, shadowings: ReadonlyMap<string, readonly string[]>): void {
    const { namespace, name } = policy.object.metadata;
    const shown = this.options.collection.get(`${namespace}/${name}`);
    const status = this.status(policy, shadowings);
    if (shown === undefined || jsonEquals(shown.status, status)) return;
    this.options.collection.putStatus({ ...policy.object, status });
  }

  private take(changes: readonly CatalogChange[]): void {
    const shadowings = new Map<string, Map<string, readonly string[]>>();
    for (const { namespace, name, policy, revision } of changes) {
      if (policy === undefined) {
        this.options.collection.delete(`${namespace}/${name}`, revision);
        continue;
      }
      const inNamespace = shadowings.get(namespace) ?? this.shadowings(namespace);
      shadowings.set(namespace, inNamespace);
      this.options.collection.put({ ...policy.object, status: this.status(policy, inNamespace) }, revision);
    }
  }

  private status(policy: CatalogPolicy, shadowings: ReadonlyMap<string, readonly string[]>): PolicyStatus {
    const { namespace, name } = policy.object.metadata;
    const shown = this.options.collection.get(`${namespace}/${name}`);
    return policyStatus({
      policy: policy.object,
      usable: policy.compiled !== undefined,
      counts: this.options.counts(policy),
      shadowedBy: shadowings.get(name) ?? [],
      former: shown?.status as PolicyStatus | undefined,
      now: this.options
        .now()
        .toISOString()
        .replace(/\.\d+Z$/, 'Z'),
    });
  }

  private shadowings(namespace: string): Map<string, readonly string[]> {
    const compiled = [...this.options.catalog.of(namespace).values()].flatMap(
      (policy) => policy.compiled ?? [],
    );
    return new Map(shadowed(compiled).map(({ policy, by }) => [policy.name, by.map(({ name }) => name)]));
  }
}
