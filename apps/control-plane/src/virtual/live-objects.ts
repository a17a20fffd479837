import type { AgentRegistry } from '../distribution/agent-registry.js';
import type { Distribution } from '../distribution/distribution.js';
import { tallyOf, type Tally } from '../distribution/policy-tally.js';
import type { Fleet } from '../fleet/fleet.js';
import type { Members } from '../fleet/members.js';
import type { PeerClients, VirtualKind } from '../fleet/peer-clients.js';
import { parseVerdict } from '../fleet/stored-verdict.js';
import type { StoreMirror } from '../index/store-mirror.js';
import type { ApiObject } from '../objects/api-object.js';
import type { PolicyCatalog } from '../policies/policy-catalog.js';
import { agentObject } from './agent-objects.js';
import { breakerObject, storedView } from './breaker-objects.js';

export interface LiveObjectsOptions {
  readonly replica: string;
  readonly catalog: PolicyCatalog;
  readonly registry: AgentRegistry;
  readonly distribution: Distribution;
  readonly fleet: Fleet;
  readonly verdicts: StoreMirror;
  readonly members: Members;
  readonly peers: PeerClients;
}

interface Loaded {
  readonly objects: readonly ApiObject[];
  readonly warnings: readonly string[];
}

/** What lives in memory, of this replica and merged over all. */
export class LiveObjects {
  private tally: { version: string; value: Tally } | undefined;

  constructor(private readonly options: LiveObjectsOptions) {}

  /** For other replicas. */
  own(kind: VirtualKind, namespace: string): readonly unknown[] {
    const inNamespace = (object: ApiObject): boolean =>
      namespace === '' || object.metadata.namespace === namespace;
    switch (kind) {
      case 'agents':
        return this.ownAgents().filter(inNamespace);
      case 'breakers':
        return this.ownBreakers().filter(inNamespace);
      case 'tally':
        return [this.ownTally()];
    }
  }

  ownTally(): Tally {
    const { registry, distribution } = this.options;
    const version = distribution.stateVersion;
    if (this.tally?.version !== version) this.tally = { version, value: tallyOf(registry, distribution) };
    return this.tally.value;
  }

  async agents(): Promise<Loaded> {
    const { members, peers } = this.options;
    const { objects, silent } = await peers.list(members.others(), 'agents');
    const merged = new Map<string, ApiObject>();
    // An agent that moved is Lost where it was: where it is now counts.
    for (const object of [...(objects as ApiObject[]), ...this.ownAgents()]) {
      const key = `${object.metadata.namespace}/${object.metadata.name}`;
      const known = merged.get(key);
      if (known === undefined || seen(object) >= seen(known)) merged.set(key, object);
    }
    const warnings = silent.map(
      (address) => `the replica at ${address} did not answer: its agents are missing`,
    );
    return { objects: [...merged.values()], warnings };
  }

  async breakers(): Promise<Loaded> {
    const { fleet, members, peers, replica } = this.options;
    if (fleet.decides) return { objects: this.ownBreakers(), warnings: [] };
    const decider = members.decider();
    if (decider === undefined || decider.id === replica)
      return this.storedBreakers('nobody decides at this moment');
    const { objects, silent } = await peers.list([decider.grpc], 'breakers');
    if (silent.length > 0) return this.storedBreakers('the deciding replica does not answer');
    return { objects: objects as ApiObject[], warnings: [] };
  }

  /** How many agents of this replica are in each phase. */
  phases(): Record<string, number> {
    const counts: Record<string, number> = { Synced: 0, Pending: 0, Refused: 0, Lost: 0 };
    for (const { status } of this.ownAgents()) {
      const { phase } = status as { phase: string };
      counts[phase] = (counts[phase] ?? 0) + 1;
    }
    return counts;
  }

  private ownAgents(): ApiObject[] {
    const { registry, distribution, replica } = this.options;
    const nowMs = performance.now();
    const live = [...registry.sessions()].map((session) => ({ session, lost: false }));
    const lost = registry.recentlyLost(nowMs).map(({ session }) => ({ session, lost: true }));
    return [...live, ...lost].map(({ session, lost: isLost }) =>
      agentObject({ session, replica, desired: distribution.desired(session), nowMs, lost: isLost }),
    );
  }

  private ownBreakers(): ApiObject[] {
    const { fleet, catalog } = this.options;
    return fleet
      .views()
      .map((view) => breakerObject(view, catalog.of(view.key.namespace).get(view.key.policy)?.object));
  }

  private storedBreakers(note: string): Loaded {
    const { verdicts, catalog } = this.options;
    const objects = [...verdicts.entries.values()].flatMap(({ value }) => {
      const verdict = parseVerdict(value);
      if (verdict === undefined) return [];
      const policy = catalog.of(verdict.key.namespace).get(verdict.key.policy);
      return breakerObject(storedView(verdict, note), policy?.object);
    });
    return {
      objects,
      warnings: [`${note}: breakers are shown as they were stored last, without live counts`],
    };
  }
}

function seen({ status }: ApiObject): string {
  const { phase, lastSeen } = status as { phase: string; lastSeen: string };
  return `${phase === 'Lost' ? 0 : 1} ${lastSeen}`;
}
