import { countsIn, type Tally } from '../distribution/policy-tally.js';
import type { CatalogPolicy } from '../policies/policy-catalog.js';
import type { PolicyCounts } from '../policies/policy-status.js';
import type { Members } from './members.js';
import type { PeerClients } from './peer-clients.js';

/** What the other replicas counted last; asked for about once a second, and not at all when there are none. */
export class PeerTallies {
  private tallies: readonly Tally[] = [];
  private heard: ReadonlySet<string> = new Set();
  private text = '';
  private changes = 0;
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
    const silentReplicas = this.members.others().filter((address) => !this.heard.has(address)).length;
    return { ...countsIn([own, ...this.tallies], policy), silentReplicas };
  }

  serviceAgents(namespace: string, service: string): number {
    return this.tallies.reduce((sum, tally) => sum + (tally.services[`${namespace}/${service}`] ?? 0), 0);
  }

  /** Counts up when what is known has changed. */
  get version(): number {
    return this.changes;
  }

  private take(tallies: readonly Tally[], heard: readonly string[]): void {
    const text = JSON.stringify([tallies, heard]);
    if (text === this.text) return;
    this.text = text;
    this.tallies = tallies;
    this.heard = new Set(heard);
    this.changes += 1;
  }

  private async ask(): Promise<void> {
    const others = this.members.others();
    if (others.length === 0) {
      return this.take([], []);
    }
    const { objects, silent } = await this.peers.list(others, 'tally');
    this.take(
      objects as Tally[],
      others.filter((address) => !silent.includes(address)),
    );
  }
}
