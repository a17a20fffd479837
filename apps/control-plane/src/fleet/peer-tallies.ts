import { countsIn, type Tally } from '../distribution/policy-tally.js';
import type { CatalogPolicy } from '../policies/policy-catalog.js';
import type { PolicyCounts } from '../policies/policy-status.js';
import type { Members } from './members.js';
import type { PeerClients } from './peer-clients.js';

/** What the other replicas counted last; asked for about once a second, and not at all when there are none. */
export class PeerTallies {
  private tallies: readonly Tally[] = [];
  private asking: Promise<void> | undefined;

  constructor(
    private readonly members: Members,
    private readonly peers: PeerClients,
  ) {}

  refresh(): Promise<void> {
    this.asking ??= this.ask().finally(() => (this.asking = undefined));
    return this.asking;
  }

  counts(own: Tally, policy: CatalogPolicy): PolicyCounts {
    return countsIn([own, ...this.tallies], policy);
  }

  serviceAgents(namespace: string, service: string): number {
    return this.tallies.reduce((sum, tally) => sum + (tally.services[`${namespace}/${service}`] ?? 0), 0);
  }

  private async ask(): Promise<void> {
    const others = this.members.others();
    if (others.length === 0) {
      this.tallies = [];
      return;
    }
    const { objects } = await this.peers.list(others, 'tally');
    this.tallies = objects as Tally[];
  }
}
