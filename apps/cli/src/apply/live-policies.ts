import type { ApiClient, ApiObject, Place } from '../client/api-client.js';
import { listObjects } from '../get/lists.js';
import { groupBy } from './group-by.js';
import type { LoadedPolicy } from './load.js';

/** From as many documents of one namespace on, one list is cheaper than a read for each. */
const LIST_FROM = 10;

/**
 * What is on the server, as it was when it was looked at. Writes are computed from it and carry its version, so that
 * anything that changed meanwhile is a conflict; `forget` then makes it look again.
 */
export class LivePolicies {
  private readonly known = new Map<string, ApiObject | undefined>();

  constructor(private readonly api: ApiClient) {}

  /** Looks at many at once. */
  async load(policies: readonly LoadedPolicy[]): Promise<void> {
    const namespaces = groupBy(policies, (policy) => policy.namespace);
    for (const [namespace, some] of namespaces) {
      if (some.length < LIST_FROM) continue;
      const { items } = await listObjects(this.api, { plural: 'resiliencepolicies', namespace }, {});
      const byName = new Map(items.map((item) => [item.metadata.name, item]));
      for (const policy of some) this.known.set(keyOf(policy), byName.get(policy.name));
    }
  }

  /** Undefined = there is none. */
  async of(policy: LoadedPolicy): Promise<ApiObject | undefined> {
    const key = keyOf(policy);
    if (!this.known.has(key)) this.known.set(key, await this.api.find(placeOfPolicy(policy)));
    return this.known.get(key);
  }

  forget(policy: LoadedPolicy): void {
    this.known.delete(keyOf(policy));
  }
}

export function placeOfPolicy({ namespace, name }: LoadedPolicy): Place & { readonly name: string } {
  return { plural: 'resiliencepolicies', namespace, name };
}

function keyOf({ namespace, name }: LoadedPolicy): string {
  return `${namespace}/${name}`;
}
