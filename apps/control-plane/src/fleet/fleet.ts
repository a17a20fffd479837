import type { BreakerKey, DeciderOptions, FleetDecider, Forced, KeyView } from '@bulwark/fleet';
import type { ForwardResponse, VerdictUpdate } from '@bulwark/protocol';
import type { Listing, Store } from '@bulwark/store';
import type { Logger } from '@bulwark/telemetry';
import { status } from '@grpc/grpc-js';
import { unavailable } from '../errors/api-error.js';
import type { EraKeeper } from '../index/era-keeper.js';
import type { PolicyCatalog } from '../policies/policy-catalog.js';
import { waitUntil, within } from '../server/closing.js';
import type { AgentRelay } from './agent-relay.js';
import { VERDICT_PREFIX } from './breaker-name.js';
import { DeciderDesk } from './decider-desk.js';
import { DeciderHost } from './decider-host.js';
import { fleetRule } from './fleet-rule.js';
import { ForwardLink } from './forward-link.js';
import type { ForwardCall } from './forward-stream.js';
import { LeasedKey, type Held } from './leased-key.js';
import { CLAIM_KEY, memberText, type Member, type Members } from './members.js';
import type { PeerClients } from './peer-clients.js';
import { parseVerdict } from './stored-verdict.js';
import type { VerdictBoard } from './verdict-board.js';
import type { VerdictFanout } from './verdict-fanout.js';
import { forcedMessage } from './verdict-messages.js';

export interface FleetOptions {
  readonly self: Member;
  readonly store: Store;
  readonly era: EraKeeper;
  readonly catalog: PolicyCatalog;
  readonly members: Members;
  readonly peers: PeerClients;
  readonly relay: AgentRelay;
  readonly board: VerdictBoard;
  readonly fanout: VerdictFanout;
  readonly logger: Logger;
  createDecider(options: DeciderOptions): FleetDecider;
  /** A verdict of a new version, or an end of one, went to the agents. */
  changed(key: BreakerKey): void;
  transition(from: string, to: string, reason: string): void;
  counted(result: string, count: number): void;
}

const LEASE_MS = 5_000;
const RECONNECT_MS = 200;
const RULE_MS = 1_000;
const LAST_WRITES_MS = 1_000;

/** This replica's part in deciding for the fleet: it decides under the claim, or brings its agents to who does. */
export class Fleet {
  private readonly claim: LeasedKey;
  private desk: DeciderDesk | undefined;
  private held: Held | undefined;
  private forward: { link: ForwardLink; address: string } | undefined;
  private stopped = false;

  constructor(private readonly options: FleetOptions) {
    const { store, self, logger, catalog, era } = options;
    this.claim = new LeasedKey({
      store,
      key: CLAIM_KEY,
      value: () => memberText(self),
      exclusive: true,
      ttlMs: LEASE_MS,
      logger,
      onHeld: (held) => this.decide(held),
    });
    catalog.listen((changes) => {
      for (const { namespace, name, policy } of changes) {
        this.desk?.host.setRule({ namespace, policy: name }, fleetRule(policy));
      }
    });
    era.listen(() => this.held && this.decide(this.held));
  }

  start(): void {
    this.claim.start();
  }

  get decides(): boolean {
    return this.desk !== undefined && !this.desk.host.isStopped;
  }

  /** Live counts by key; only the deciding replica has them. */
  views(namespace?: string): KeyView[] {
    return this.desk?.host.views(namespace) ?? [];
  }

  /** The claim or the members changed. */
  follow(): void {
    if (this.stopped || this.decides) return;
    const decider = this.options.members.decider();
    if (decider === undefined) this.claim.wake();
    const address = decider === undefined || decider.id === this.options.self.id ? undefined : decider.grpc;
    if (address === this.forward?.address) return;
    this.leaveDecider();
    if (address !== undefined) this.join(address);
  }

  /** Takes the stream of another replica; refused unless this one decides. */
  accept(call: ForwardCall): void {
    if (this.desk !== undefined && this.decides) return this.desk.accept(call);
    call.emit('error', { code: status.UNAVAILABLE, details: 'this replica does not decide' });
  }

  /** Forces or releases a breaker, here or at the replica that decides; resolves when it is stored. */
  async force(key: BreakerKey, forced: Forced | undefined): Promise<void> {
    if (this.decides) return this.forceHere(key, forced);
    const decider = this.options.members.decider();
    if (decider === undefined || decider.id === this.options.self.id) {
      throw unavailable('no replica decides at this moment; try again');
    }
    await this.options.peers.force(decider.grpc, {
      key: { ...key },
      state: forced === undefined ? 0 : forcedMessage(forced.state),
      forMs: forced?.remainingMs ?? 0,
      by: forced?.by ?? '',
      reason: forced?.reason ?? '',
    });
  }

  /** Stops deciding and gives the claim back, so that another replica takes it at once. */
  async stop(): Promise<void> {
    this.stopped = true;
    if (this.desk !== undefined) await within(LAST_WRITES_MS, this.desk.host.idle());
    this.endDeciding('this replica is leaving');
    this.leaveDecider();
    await this.claim.stop();
  }

  private async forceHere(key: BreakerKey, forced: Forced | undefined): Promise<void> {
    const rule = (): unknown => fleetRule(this.options.catalog.of(key.namespace).get(key.policy));
    // The policy may have been written at another replica a moment ago.
    const known = await waitUntil(() => rule() !== undefined, RULE_MS);
    if (!known) throw unavailable('the policy has not reached the deciding replica yet; try again');
    if (this.desk === undefined) throw unavailable('this replica does not decide any more; try again');
    await this.desk.host.force(key, forced);
  }

  private decide(held: Held): void {
    this.held = held;
    held.lost.addEventListener('abort', () => this.lost(held), { once: true });
    this.begin(held).catch((error: unknown) => {
      this.options.logger.error({ err: error }, 'deciding could not begin; another replica may try');
      this.lost(held);
      this.claim.renounce();
    });
  }

  private async begin(held: Held): Promise<void> {
    const { store, era, relay, logger } = this.options;
    // An older era's: what it said after the list was read would be lost on the next one.
    this.endDeciding('this replica decides anew');
    // Read after the claim is ours: no other decider can write any more.
    const listing = await store.list(VERDICT_PREFIX);
    if (held.lost.aborted || this.stopped || this.held !== held) return;
    this.endDeciding('this replica decides anew');
    this.leaveDecider();
    const desk = this.createDesk(held, listing);
    this.desk = desk;
    const fields = { token: held.createRevision, era: era.current, verdicts: listing.entries.length };
    logger.info(fields, 'this replica decides for the fleet');
    relay.use(desk.link());
    desk.host.start();
  }

  private createDesk(held: Held, listing: Listing): DeciderDesk {
    const { store, era, catalog, logger, board, fanout } = this.options;
    const found = listing.entries.flatMap(({ value }) => parseVerdict(value) ?? []);
    const desk = new DeciderDesk({
      board,
      fanout,
      createHost: (audience) =>
        new DeciderHost({
          createDecider: (options) => this.options.createDecider(options),
          era: era.current,
          claim: held,
          store,
          found,
          foundRevisions: new Map(listing.entries.map(({ key, modRevision }) => [key, modRevision])),
          audience,
          logger,
          fenced: () => {
            this.lost(held);
            this.claim.renounce();
          },
        }),
      deliver: (update) => this.deliver(update),
      counted: (result, count) => this.options.counted(result, count),
      transition: (from, to, reason) => this.options.transition(from, to, reason),
    });
    for (const policy of catalog.all()) {
      const { namespace, name } = policy.object.metadata;
      desk.host.setRule({ namespace, policy: name }, fleetRule(policy));
    }
    for (const { key } of found) {
      if (fleetRule(catalog.of(key.namespace).get(key.policy)) === undefined)
        desk.host.setRule(key, undefined);
    }
    return desk;
  }

  private lost(held: Held): void {
    if (this.held !== held) return;
    this.held = undefined;
    this.endDeciding('this replica does not decide any more');
    this.follow();
  }

  private endDeciding(why: string): void {
    const { desk } = this;
    this.desk = undefined;
    if (desk === undefined) return;
    this.options.relay.use(undefined);
    desk.close(why);
    this.options.logger.info({}, why);
  }

  private join(address: string): void {
    const link = new ForwardLink({
      replica: this.options.self.id,
      client: this.options.peers.client(address),
      logger: this.options.logger,
      receive: (response) => this.receive(response),
      ended: () => {
        if (this.forward?.link !== link) return;
        this.leaveDecider();
        setTimeout(() => this.follow(), RECONNECT_MS).unref();
      },
    });
    this.forward = { link, address };
    this.options.relay.use(link);
  }

  private leaveDecider(): void {
    const { forward } = this;
    this.forward = undefined;
    if (forward === undefined) return;
    this.options.relay.use(undefined);
    forward.link.close();
  }

  private receive({ message }: ForwardResponse): void {
    if (message?.$case === 'verdicts') this.deliver(message.value);
    else if (message?.$case === 'poll' && message.value.poll !== undefined) {
      this.options.fanout.poll(message.value.poll, message.value.agents);
    }
  }

  /** To this replica's agents, and onto the board for those that come later. @returns what was really said */
  private deliver({ verdicts, removed }: VerdictUpdate): VerdictUpdate {
    const { board, fanout } = this.options;
    const nowMs = performance.now();
    const changed = verdicts.filter(({ key, version }) => {
      const known = key && board.get(key)?.version;
      return (
        known?.epoch !== version?.epoch || known?.token !== version?.token || known?.era !== version?.era
      );
    });
    const said = { verdicts: verdicts.flatMap((verdict) => board.post(verdict, nowMs) ?? []), removed };
    for (const key of removed) board.remove(key);
    fanout.send(said);
    for (const { key } of changed) if (key) this.options.changed(key);
    for (const key of removed) this.options.changed(key);
    return said;
  }
}
