import type {
  AgentIdentity,
  BreakerKey,
  DeciderOptions,
  FleetDecider,
  Forced,
  KeyView,
  StoredVerdict,
} from '@bulwark/fleet';
import type { ForwardResponse, VerdictUpdate } from '@bulwark/protocol';
import type { Store } from '@bulwark/store';
import type { Logger } from '@bulwark/telemetry';
import { status } from '@grpc/grpc-js';
import { unavailable } from '../errors/api-error.js';
import { waitUntil } from '../server/closing.js';
import type { EraKeeper } from '../index/era-keeper.js';
import type { PolicyCatalog } from '../policies/policy-catalog.js';
import type { AgentRelay } from './agent-relay.js';
import { keyId, VERDICT_PREFIX } from './breaker-name.js';
import { DeciderHost, type DeciderAudience } from './decider-host.js';
import type { FleetLink } from './fleet-link.js';
import { fleetRule } from './fleet-rule.js';
import { ForwardLink } from './forward-link.js';
import { ForwardStream, type ForwardCall } from './forward-stream.js';
import { LeasedKey, type Held } from './leased-key.js';
import { CLAIM_KEY, memberText, type Member, type Members } from './members.js';
import type { PeerClients } from './peer-clients.js';
import type { VerdictBoard } from './verdict-board.js';
import type { VerdictFanout } from './verdict-fanout.js';
import { forcedMessage, verdictMessage } from './verdict-messages.js';

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
/** Agents of a replica that died reconnect to another one within this; only then are they held for gone. */
const ORPHAN_MS = 3_000;

/** This replica's part in deciding for the fleet: it decides under the claim, or brings its agents to who does. */
export class Fleet {
  private readonly claim: LeasedKey;
  private readonly streams = new Set<ForwardStream>();
  /** Which way each agent's word comes: a stream, or "here". */
  private readonly sources = new Map<string, ForwardStream | 'here'>();
  private readonly orphans = new Set<NodeJS.Timeout>();
  private host: DeciderHost | undefined;
  private held: Held | undefined;
  private forward: { link: ForwardLink; address: string } | undefined;
  private outbox: { verdicts: Map<string, StoredVerdictPush>; removed: BreakerKey[] } | undefined;
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
        this.host?.setRule({ namespace, policy: name }, fleetRule(policy));
      }
    });
    era.listen(() => this.held && this.decide(this.held));
  }

  start(): void {
    this.claim.start();
  }

  get decides(): boolean {
    return this.host !== undefined && !this.host.isStopped;
  }

  /** Live counts by key; only the deciding replica has them. */
  views(namespace?: string): KeyView[] {
    return this.host?.views(namespace) ?? [];
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
    if (!this.decides) {
      call.emit('error', { code: status.UNAVAILABLE, details: 'this replica does not decide' });
      return;
    }
    const stream: ForwardStream = new ForwardStream({
      call,
      link: this.localLink(() => stream),
      counted: (result, count) => this.options.counted(result, count),
    });
    this.streams.add(stream);
    stream.broadcast({ verdicts: this.options.board.alive(performance.now(), () => true), removed: [] });
    const over = (): void => {
      if (this.streams.delete(stream)) this.orphan(stream);
    };
    for (const event of ['cancelled', 'close', 'error']) call.on(event, over);
    call.on('end', () => {
      over();
      call.end();
    });
  }

  /** Forces or releases a breaker, here or at the replica that decides; resolves when it is stored. */
  async force(key: BreakerKey, forced: Forced | undefined): Promise<void> {
    if (this.decides) return this.forceHere(key, forced);
    const decider = this.options.members.decider();
    if (decider === undefined || decider.id === this.options.self.id) {
      throw unavailable('no replica decides at this moment; try again');
    }
    const { by, reason, remainingMs, state } = forced ?? {
      by: '',
      reason: '',
      remainingMs: 0,
      state: undefined,
    };
    await this.options.peers.force(decider.grpc, {
      key: { ...key },
      state: state === undefined ? 0 : forcedMessage(state),
      forMs: remainingMs,
      by,
      reason,
    });
  }

  private async forceHere(key: BreakerKey, forced: Forced | undefined): Promise<void> {
    const known = (): boolean =>
      fleetRule(this.options.catalog.of(key.namespace).get(key.policy)) !== undefined;
    // The policy may have been written at another replica a moment ago.
    if (!(await waitUntil(known, RULE_MS)))
      throw unavailable('the policy has not reached the deciding replica yet');
    await this.host?.force(key, forced);
  }

  /** Stops deciding and gives the claim back, so that another replica takes it at once. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.host?.idle();
    this.endDeciding('this replica is leaving');
    this.leaveDecider();
    for (const timer of this.orphans) clearTimeout(timer);
    await this.claim.stop();
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
    const { store, era, catalog, relay, logger } = this.options;
    const listing = await store.list(VERDICT_PREFIX);
    if (held.lost.aborted || this.stopped || this.held !== held) return;
    this.host?.stop();
    this.leaveDecider();
    this.endStreams();
    const found = listing.entries.map(({ value }) => JSON.parse(value) as StoredVerdict);
    const host = new DeciderHost({
      createDecider: (options) => this.options.createDecider(options),
      era: era.current,
      claim: held,
      store,
      found,
      foundRevisions: new Map(listing.entries.map(({ key, modRevision }) => [key, modRevision])),
      audience: this.audience(),
      logger,
      fenced: () => {
        this.lost(held);
        this.claim.renounce();
      },
    });
    this.host = host;
    const token = held.createRevision;
    logger.info({ token, era: era.current, verdicts: found.length }, 'this replica decides for the fleet');
    for (const policy of catalog.all()) {
      const { namespace, name } = policy.object.metadata;
      host.setRule({ namespace, policy: name }, fleetRule(policy));
    }
    for (const { key } of found) {
      const policy = catalog.of(key.namespace).get(key.policy);
      if (fleetRule(policy) === undefined) host.setRule(key, undefined);
    }
    relay.use(this.localLink(() => 'here'));
    host.start();
  }

  private lost(held: Held): void {
    if (this.held !== held) return;
    this.held = undefined;
    this.endDeciding('this replica does not decide any more');
    this.follow();
  }

  private endDeciding(why: string): void {
    if (this.host === undefined) return;
    this.host.stop();
    this.host = undefined;
    this.options.relay.use(undefined);
    this.options.logger.info({}, why);
    this.endStreams();
  }

  /** The other replicas come again, and say anew which agents they speak for. */
  private endStreams(): void {
    for (const stream of this.streams) stream.close('this replica does not decide any more, or anew');
    this.streams.clear();
    this.sources.clear();
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

  /** To this replica's agents, and onto the board for those that come later. */
  private deliver({ verdicts, removed }: VerdictUpdate): void {
    const { board, fanout } = this.options;
    const nowMs = performance.now();
    const changed = verdicts.filter(({ key, version }) => {
      const known = key && board.get(key)?.version;
      return (
        known?.epoch !== version?.epoch || known?.token !== version?.token || known?.era !== version?.era
      );
    });
    const posted = verdicts.flatMap((verdict) => board.post(verdict, nowMs) ?? []);
    for (const key of removed) board.remove(key);
    fanout.send({ verdicts: posted, removed });
    for (const stream of this.streams) stream.broadcast({ verdicts: posted, removed });
    for (const { key } of changed) if (key) this.options.changed(key);
    for (const key of removed) this.options.changed(key);
  }

  private audience(): DeciderAudience {
    return {
      push: (verdict, ttlMs) => {
        this.countTransition(verdict);
        this.post().verdicts.set(keyId(verdict.key), { verdict, ttlMs });
      },
      remove: (key) => {
        this.post().verdicts.delete(keyId(key));
        this.post().removed.push(key);
      },
      poll: ({ pollId, key, agents }) => {
        const poll = { pollId, keys: [{ ...key }] };
        const here = agents.filter((id) => this.sources.get(id) === 'here');
        if (here.length > 0) this.options.fanout.poll(poll, here);
        for (const stream of this.streams) stream.poll(poll, agents);
      },
    };
  }

  private countTransition({ key, version, transitions }: StoredVerdict): void {
    const last = transitions.at(-1);
    const known = this.options.board.get(key)?.version;
    if (last === undefined || last.epoch !== version.epoch || known?.epoch === version.epoch) return;
    this.options.transition(last.from, last.to, last.reason);
  }

  /** What is pushed in one instant goes out together. */
  private post(): NonNullable<Fleet['outbox']> {
    if (this.outbox !== undefined) return this.outbox;
    const outbox = (this.outbox = { verdicts: new Map<string, StoredVerdictPush>(), removed: [] });
    queueMicrotask(() => {
      this.outbox = undefined;
      const verdicts = [...outbox.verdicts.values()].map(({ verdict, ttlMs }) =>
        verdictMessage(verdict, ttlMs),
      );
      if (!this.stopped) this.deliver({ verdicts, removed: outbox.removed });
    });
    return outbox;
  }

  /** An agent belongs to the way it came last; what an older way says of its end is ignored. */
  private localLink(source: () => ForwardStream | 'here'): FleetLink {
    return {
      agentUp: (agent) => {
        this.sources.set(agent.id, source());
        this.host?.agentUp(agent);
      },
      agentDown: (agent) => {
        if (this.sources.get(agent.id) !== source()) return;
        this.sources.delete(agent.id);
        this.host?.agentDown(agent);
      },
      report: (agent, report) => {
        if (this.sources.get(agent.id) === source()) this.host?.report(agent, report);
      },
    };
  }

  private orphan(stream: ForwardStream): void {
    const timer = setTimeout(() => {
      this.orphans.delete(timer);
      for (const agent of stream.agents.values()) this.gone(agent, stream);
    }, ORPHAN_MS);
    this.orphans.add(timer);
  }

  private gone(agent: AgentIdentity, stream: ForwardStream): void {
    if (this.sources.get(agent.id) !== stream) return;
    this.sources.delete(agent.id);
    this.host?.agentDown(agent);
  }
}

interface StoredVerdictPush {
  readonly verdict: StoredVerdict;
  readonly ttlMs: number;
}
