import { matchesCaller } from '@bulwark/policy';
import {
  agentId,
  compareSnapshotVersions,
  formatSnapshotVersion,
  resourceId,
  type Ack,
  type ConnectRequest,
  type Hello,
  type Report,
  type Resource,
  type SnapshotVersion,
} from '@bulwark/protocol';
import type { Logger } from '@bulwark/telemetry';
import { status } from '@grpc/grpc-js';
import type { EraKeeper } from '../index/era-keeper.js';
import type { StoreMirror } from '../index/store-mirror.js';
import type { PolicyCatalog } from '../policies/policy-catalog.js';
import type { AgentRegistry, ReplicaPlace } from './agent-registry.js';
import { MAX_REASON } from './agent-delivery.js';
import { AgentSession, encode, type AgentStream } from './agent-session.js';
import { checkHello, type Refused } from './hello-rules.js';
import type { UpdateEncoder } from './update-bytes.js';

/** What the rest of the replica wants to know of agents. */
export interface AgentListener {
  /** Welcome and the first update are written: what is sent now comes after them. */
  up(session: AgentSession): void;
  down(session: AgentSession): void;
  report(session: AgentSession, report: Report): void;
}

export interface DistributionMetrics {
  /** Seconds from the write of an update to its answer. */
  acknowledged(seconds: number): void;
  refusedResources(count: number): void;
}

export interface DistributionOptions {
  readonly replica: string;
  readonly catalog: PolicyCatalog;
  readonly mirror: StoreMirror;
  readonly era: EraKeeper;
  readonly registry: AgentRegistry;
  readonly encoder: UpdateEncoder;
  readonly maxAgents: number;
  readonly logger: Logger;
  readonly metrics: DistributionMetrics;
  readonly listener: AgentListener;
  place(): ReplicaPlace;
  /** Live agents of a service on the other replicas, as far as known. */
  serviceAgentsElsewhere(namespace: string, service: string): number;
}

/** A stream that was accepted by the transport and has not ended. */
export interface StreamPort extends AgentStream {
  readonly alive: boolean;
  end(refused: Refused): void;
}

/** Where a stream's events go. */
export interface StreamHandler {
  /** The first one must be Hello. */
  message(request: ConnectRequest): void;
  /** The other side reads again. */
  drained(): void;
  ended(): void;
}

/** A stream that says nothing is not kept: it may be anybody's. */
const HELLO_MS = 10_000;
const LIVENESS_MS = 1_500;
const CONFIRM_MS = 3_000;
/** Refusals of one answer that stand in the log. */
const MAX_LOGGED = 20;
const MAX_NAME = 128;
/** Wishes by set of labels; more than there are agents are those of agents that went. */
const MAX_WISHES = 20_000;
/** A lying agent cannot push the era out of reach. */
const MAX_ERA_JUMP = 1_000;

/** Keeps agents in step with the catalog: who may connect, what each is sent, and what it answered. */
export class Distribution {
  private readonly wishes = new Map<string, { revision: number; desired: ReadonlyMap<string, Resource> }>();
  private draining = false;
  private answers = 0;

  constructor(private readonly options: DistributionOptions) {
    options.catalog.listen((changes) => {
      this.wishes.clear();
      for (const namespace of new Set(changes.map((change) => change.namespace)))
        this.updateNamespace(namespace);
    });
    options.era.listen(() => this.updateAll(true));
  }

  /** Changes when what agents have or hold may have changed. */
  get stateVersion(): string {
    return `${this.options.registry.version}.${this.answers}.${this.options.catalog.revision}`;
  }

  /** Takes a stream. */
  open(stream: StreamPort): StreamHandler {
    let session: AgentSession | undefined;
    let release: (() => void) | undefined;
    let greeted = false;
    const greet = async (hello: Hello): Promise<void> => {
      let refused = await this.admit(hello, stream);
      // Others may have come while this one was looked into; from the last look on nothing waits.
      while (refused === undefined && stream.alive && this.isTaken(hello)) {
        refused = await this.resolveClash(hello, stream);
      }
      refused ??= this.noRoom();
      if (refused !== undefined) return stream.end(refused);
      if (!stream.alive) return;
      const taken = this.options.registry.takeSlot(hello.namespace, this.options.place());
      release = taken.release;
      session = this.begin(hello, { stream, slot: taken.slot });
    };
    const impatience = setTimeout(() => {
      const details = `Hello was not said within ${HELLO_MS / 1_000} s`;
      stream.end({ code: status.DEADLINE_EXCEEDED, details });
    }, HELLO_MS).unref();
    return {
      message: ({ message }) => {
        if (message === undefined) return;
        if (message.$case === 'hello') {
          clearTimeout(impatience);
          if (greeted) return stream.end({ code: status.INVALID_ARGUMENT, details: 'Hello is said once' });
          greeted = true;
          greet(message.value).catch((error: unknown) => {
            this.options.logger.warn({ err: error }, 'an agent could not be taken');
            stream.end({ code: status.UNAVAILABLE, details: 'the store cannot be reached; try again' });
          });
        } else if (session !== undefined) this.receive(session, message);
        else if (!greeted)
          stream.end({ code: status.INVALID_ARGUMENT, details: 'the first message must be Hello' });
      },
      drained: () => session?.drained(),
      ended: () => {
        clearTimeout(impatience);
        release?.();
        if (session !== undefined) this.end(session);
      },
    };
  }

  /** Sends every agent what it lacks; `announce` also those that lack nothing. */
  updateAll(announce = false): void {
    for (const session of this.options.registry.sessions()) this.update(session, announce);
  }

  /** Tells agents when the number of agents of their service has changed. Called every few seconds. */
  announceServiceSizes(): void {
    for (const session of this.options.registry.sessions()) {
      if (session.serviceAgents !== this.serviceAgents(session.hello)) this.update(session, true);
    }
  }

  /** What one agent should have in force, by resource id. */
  desired({ hello, audience }: AgentSession): ReadonlyMap<string, Resource> {
    const { catalog } = this.options;
    const known = this.wishes.get(audience);
    if (known?.revision === catalog.revision) return known.desired;
    const desired = new Map<string, Resource>();
    for (const { compiled, resource } of catalog.of(hello.namespace).values()) {
      if (compiled === undefined || resource.name === undefined) continue;
      if (matchesCaller(compiled, hello.labels)) desired.set(resourceId(resource.name), resource);
    }
    if (this.wishes.size >= MAX_WISHES) this.wishes.clear();
    this.wishes.set(audience, { revision: catalog.revision, desired });
    return desired;
  }

  /** Asks all agents to go elsewhere, and takes no new ones. */
  drain(withinMs: number): void {
    this.draining = true;
    for (const session of this.options.registry.sessions()) session.drain(withinMs);
  }

  closeAll(reason: string): void {
    for (const session of [...this.options.registry.sessions()]) session.close(reason);
  }

  private get version(): SnapshotVersion {
    return { era: this.options.era.current, revision: this.options.catalog.revision };
  }

  private async admit(hello: Hello, stream: StreamPort): Promise<Refused | undefined> {
    const refused = checkHello(hello) ?? this.noRoom() ?? (await this.catchUp(hello));
    return refused ?? this.resolveClash(hello, stream);
  }

  /** Why no agent at all is taken at this moment. */
  private noRoom(): Refused | undefined {
    const { catalog, era, registry, maxAgents } = this.options;
    const notNow = (details: string): Refused => ({ code: status.UNAVAILABLE, details });
    if (this.draining) return notNow('this replica is leaving; try another one');
    if (!catalog.loaded || !era.loaded) return notNow('this replica is still loading; try again');
    if (registry.size < maxAgents) return undefined;
    const details = `this replica takes ${maxAgents} agents; try another one`;
    return { code: status.RESOURCE_EXHAUSTED, details };
  }

  private isTaken(hello: Hello): boolean {
    return this.options.registry.get(agentId(hello)) !== undefined;
  }

  /**
   * Never answers an agent with something older than what it has, except after the store itself went back. That this
   * replica is behind is no reason for a new era: the agent would be taken back by it.
   */
  private async catchUp(hello: Hello): Promise<Refused | undefined> {
    const { held } = hello;
    const { era, mirror, logger } = this.options;
    if (held === undefined || compareSnapshotVersions(held, this.version) <= 0) return undefined;
    if (held.era > era.current + MAX_ERA_JUMP) {
      return { code: status.INVALID_ARGUMENT, details: `era ${held.era} is not one of this control plane` };
    }
    if (held.era > era.current) await era.raise(held.era, 'an agent has seen this era');
    if (compareSnapshotVersions(held, this.version) <= 0) return undefined;
    const confirmed = await mirror.confirm(held.revision, CONFIRM_MS);
    if (confirmed === 'reached') return undefined;
    if (confirmed === 'behind') {
      return { code: status.UNAVAILABLE, details: 'this replica is behind the store; try another one' };
    }
    const text = formatSnapshotVersion(held);
    logger.warn({ agent: hello.instance, held: text }, 'an agent holds a newer version than the store');
    await era.raise(held.era + 1, `an agent holds ${text}, which is newer than the store`);
    return undefined;
  }

  /** Two live agents may not share a name; a dead stream may not keep its successor out. */
  private async resolveClash(hello: Hello, stream: StreamPort): Promise<Refused | undefined> {
    const id = agentId(hello);
    for (;;) {
      const older = this.options.registry.get(id);
      if (older === undefined) return undefined;
      if (older.hello.incarnation === hello.incarnation) {
        if (hello.connection < older.hello.connection) {
          return { code: status.UNAVAILABLE, details: 'a newer connection of this agent is here already' };
        }
        older.close('a newer connection of this agent took over');
        this.end(older);
        continue;
      }
      if (await this.isResponsive(older)) {
        const details = `an agent with the instance id "${hello.instance}" of ${hello.namespace}/${hello.service} is connected`;
        return { code: status.ALREADY_EXISTS, details };
      }
      if (!stream.alive) return undefined;
      older.close('a newer start of this agent took over');
      this.end(older);
    }
  }

  /** Whether an agent says anything when asked for its counters. */
  private async isResponsive(session: AgentSession): Promise<boolean> {
    const before = session.lastSeenMs;
    session.sendPoll(encode({ message: { $case: 'poll', value: { pollId: 0, keys: [] } } }));
    const until = performance.now() + LIVENESS_MS;
    while (performance.now() < until) {
      if (session.lastSeenMs !== before) return true;
      if (this.options.registry.get(session.id) !== session) return false;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return false;
  }

  private begin(hello: Hello, { stream, slot }: { stream: StreamPort; slot: number }): AgentSession {
    const { registry, replica, listener } = this.options;
    const session = new AgentSession({
      hello,
      stream,
      slot,
      connectedAt: new Date(),
      nowMs: performance.now(),
    });
    registry.add(session);
    session.welcome(replica, this.serviceAgents(hello));
    this.update(session);
    listener.up(session);
    return session;
  }

  private end(session: AgentSession): void {
    const gone = this.options.registry.remove(session, { at: new Date(), ms: performance.now() });
    if (gone) this.options.listener.down(session);
  }

  private receive(session: AgentSession, message: NonNullable<ConnectRequest['message']>): void {
    session.lastSeenMs = performance.now();
    session.lastSeenAt = new Date();
    if (message.$case === 'ack') this.acknowledge(session, message.value);
    else if (message.$case === 'report') this.options.listener.report(session, message.value);
  }

  private acknowledge(session: AgentSession, ack: Ack): void {
    const tookMs = session.delivery.answered(ack, performance.now());
    if (tookMs === undefined) return;
    this.answers += 1;
    this.options.metrics.acknowledged(tookMs / 1_000);
    const refused = ack.resources.filter((one) => !one.accepted);
    this.logRefusals(session, refused);
    this.options.metrics.refusedResources(refused.length);
    this.update(session);
  }

  /** What an agent says is bounded before it is written anywhere. */
  private logRefusals(session: AgentSession, refused: Ack['resources']): void {
    const { logger } = this.options;
    for (const { name, generation, reason } of refused.slice(0, MAX_LOGGED)) {
      const policy = `${name?.namespace}/${name?.name}`.slice(0, MAX_NAME);
      const fields = { agent: session.id, policy, generation, reason: reason.slice(0, MAX_REASON) };
      logger.warn(fields, 'an agent refused a policy');
    }
    const more = refused.length - MAX_LOGGED;
    if (more > 0) logger.warn({ agent: session.id, more }, 'an agent refused more policies');
  }

  private updateNamespace(namespace: string): void {
    for (const session of this.options.registry.of(namespace)) this.update(session);
  }

  private update(session: AgentSession, announce = false): void {
    if (!this.options.catalog.loaded) return;
    session.update(this.desired(session), this.version, {
      encoder: this.options.encoder,
      serviceAgents: this.serviceAgents(session.hello),
      nowMs: performance.now(),
      announce,
    });
  }

  private serviceAgents({ namespace, service }: Hello): number {
    const here = this.options.registry.serviceAgents(namespace, service);
    return Math.max(1, here + this.options.serviceAgentsElsewhere(namespace, service));
  }
}
