import type { ObjectCollection } from '../index/object-collection.js';
import type { StoreMirror } from '../index/store-mirror.js';
import type { ApiObject } from '../objects/api-object.js';
import { jsonEquals } from '../objects/json-value.js';
import type { CatalogChange, CatalogPolicy, PolicyCatalog } from './policy-catalog.js';
import { policyStatus, type PolicyCounts, type PolicyStatus } from './policy-status.js';
import { Shadowings } from './shadowings.js';

export interface PolicyObjectsOptions {
  readonly mirror: StoreMirror;
  readonly catalog: PolicyCatalog;
  readonly collection: ObjectCollection;
  counts(policy: CatalogPolicy): PolicyCounts;
  /** Changes whenever some counts may have changed. */
  countsVersion(): string;
  now(): Date;
}

/**
 * Keeps the collection of policies that lists and watches are served from: the stored objects, with the computed
 * status laid over them. The status is not stored; every replica computes it from what all replicas' agents said.
 */
export class PolicyObjects {
  private readonly shadowings: Shadowings;
  private shown = '';

  constructor(private readonly options: PolicyObjectsOptions) {
    const { mirror, catalog, collection } = options;
    this.shadowings = new Shadowings(catalog);
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
    return { ...object, status: this.status(policy) };
  }

  /** Brings every status up to date; watchers see those that changed. */
  refresh(): void {
    this.shadowings.refresh(performance.now());
    const version = `${this.options.countsVersion()} ${this.shadowings.version}`;
    if (version === this.shown) return;
    this.shown = version;
    for (const policy of this.options.catalog.all()) this.refreshOne(policy);
  }

  private refreshOne(policy: CatalogPolicy): void {
    const { namespace, name } = policy.object.metadata;
    const shown = this.options.collection.get(`${namespace}/${name}`);
    const status = this.status(policy);
    if (shown === undefined || jsonEquals(shown.status, status)) return;
    this.options.collection.putStatus({ ...policy.object, status });
  }

  private take(changes: readonly CatalogChange[]): void {
    const { catalog } = this.options;
    for (const { namespace, name, policy, revision } of changes) {
      if (policy === undefined) this.options.collection.delete(`${namespace}/${name}`, revision);
      else
        this.options.collection.put(
          { ...policy.object, status: this.status(policy, catalog.winnersOver(policy.compiled)) },
          revision,
        );
    }
  }

  private status(policy: CatalogPolicy, winners?: readonly string[]): PolicyStatus {
    const { namespace, name } = policy.object.metadata;
    const shown = this.options.collection.get(`${namespace}/${name}`);
    return policyStatus({
      policy: policy.object,
      usable: policy.compiled !== undefined,
      counts: this.options.counts(policy),
      shadowedBy: winners ?? this.shadowings.of(namespace).get(name) ?? [],
      former: shown?.status as PolicyStatus | undefined,
      now: this.options
        .now()
        .toISOString()
        .replace(/\.\d+Z$/, 'Z'),
    });
  }
}
