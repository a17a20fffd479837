import {
  compareSnapshotVersions,
  resourceId,
  sameResource,
  type Ack,
  type Hello,
  type Resource,
  type ResourceName,
  type SnapshotVersion,
} from '@bulwark/protocol';

/** What is to be sent now; the nonce is put on by whoever makes the bytes. */
export interface UpdatePlan {
  readonly version: SnapshotVersion;
  readonly full: boolean;
  readonly resources: readonly Resource[];
  readonly removed: readonly ResourceName[];
}

export interface ResourceState {
  readonly uid: string;
  readonly generation: number;
}

export interface RefusedState extends ResourceState {
  /** Why, in the agent's words. */
  readonly reason: string;
}

interface InFlight {
  readonly nonce: string;
  readonly plan: UpdatePlan;
  /** Monotonic milliseconds. */
  readonly sentAtMs: number;
}

/** Characters of an agent's reason that are kept. */
export const MAX_REASON = 1_024;

/**
 * What one agent holds, what it refused, and the one message on its way to it. Latest wins: while a message is in
 * flight nothing is queued; when its answer comes the difference to the newest wish is worked out anew.
 */
export class AgentDelivery {
  /** In force at the agent, by resource id. */
  readonly held = new Map<string, ResourceState>();
  /** Refused generations: each is sent once only. */
  readonly refused = new Map<string, RefusedState>();
  private inFlight: InFlight | undefined;
  private ackedVersion: SnapshotVersion | undefined;
  private sentVersion: SnapshotVersion | undefined;
  private started = false;
  private readonly heldVersion: SnapshotVersion | undefined;

  constructor(hello: Pick<Hello, 'held' | 'resources'>) {
    this.heldVersion = hello.held;
    for (const { name, uid, generation } of hello.resources) {
      if (name !== undefined) this.held.set(resourceId(name), { uid, generation });
    }
  }

  get sent(): SnapshotVersion | undefined {
    return this.sentVersion;
  }

  get acked(): SnapshotVersion | undefined {
    return this.ackedVersion;
  }

  get waiting(): boolean {
    return this.inFlight !== undefined;
  }

  /** Milliseconds since the message in flight was sent; 0 = in step. */
  lagMs(nowMs: number): number {
    return this.inFlight === undefined ? 0 : Math.max(0, nowMs - this.inFlight.sentAtMs);
  }

  /**
   * The difference between what the agent has and what it should have; undefined when there is none, or while a message
   * is in flight. The first plan is always made, so that the agent knows it is in step; `announce` makes one as well.
   * Never older than what was sent before on this stream, or than what the agent said it holds.
   */
  plan(
    desired: ReadonlyMap<string, Resource>,
    version: SnapshotVersion,
    announce = false,
  ): UpdatePlan | undefined {
    if (this.inFlight !== undefined) return undefined;
    const last = this.sentVersion ?? this.heldVersion;
    // The store went back and the era is not raised yet: the agent would refuse this, as it must.
    if (last !== undefined && compareSnapshotVersions(version, last) < 0) return undefined;
    // In another era the same uid and generation may be another object: nothing that is held counts.
    const full = last?.era !== version.era;
    const resources: Resource[] = [];
    for (const [id, resource] of desired) {
      if (full || this.needs(id, resource)) resources.push(resource);
    }
    const removed: ResourceName[] = [];
    for (const id of full ? [] : this.held.keys()) if (!desired.has(id)) removed.push(nameOf(id));
    for (const id of this.refused.keys()) if (!desired.has(id)) this.refused.delete(id);
    if (this.started && !full && !announce && resources.length === 0 && removed.length === 0)
      return undefined;
    return { version, full, resources, removed };
  }

  sending(plan: UpdatePlan, nonce: string, nowMs: number): void {
    this.started = true;
    this.sentVersion = plan.version;
    this.inFlight = { nonce, plan, sentAtMs: nowMs };
  }

  /** @returns milliseconds from send to this answer; undefined when the answer is to another message: it is ignored */
  answered(ack: Ack, nowMs: number): number | undefined {
    const flight = this.inFlight;
    if (flight === undefined || flight.nonce !== ack.nonce) return undefined;
    this.inFlight = undefined;
    this.ackedVersion = flight.plan.version;
    if (flight.plan.full) this.forgetAllBut(new Set(flight.plan.resources.map(idOf)));
    for (const name of flight.plan.removed) this.forget(resourceId(name));
    const answers = new Map(ack.resources.flatMap((one) => (one.name ? [[resourceId(one.name), one]] : [])));
    for (const resource of flight.plan.resources) {
      const answer = answers.get(idOf(resource));
      const reason = answer === undefined ? 'the agent did not say what became of it' : answer.reason;
      this.settle(resource, answer?.accepted === true && answer.generation === resource.generation, reason);
    }
    return nowMs - flight.sentAtMs;
  }

  private settle(resource: Resource, accepted: boolean, reason: string): void {
    const id = idOf(resource);
    const state = { uid: resource.uid, generation: resource.generation };
    if (accepted) {
      this.held.set(id, state);
      this.refused.delete(id);
    } else {
      this.refused.set(id, { ...state, reason: reason.slice(0, MAX_REASON) || 'no reason was given' });
    }
  }

  private needs(id: string, resource: Resource): boolean {
    const held = this.held.get(id);
    if (held !== undefined && sameResource(held, resource)) return false;
    const refused = this.refused.get(id);
    return refused === undefined || !sameResource(refused, resource);
  }

  private forgetAllBut(kept: ReadonlySet<string>): void {
    for (const id of [...this.held.keys(), ...this.refused.keys()]) if (!kept.has(id)) this.forget(id);
  }

  private forget(id: string): void {
    this.held.delete(id);
    this.refused.delete(id);
  }
}

function idOf(resource: Resource): string {
  return resource.name === undefined ? '' : resourceId(resource.name);
}

function nameOf(id: string): ResourceName {
  const [kind = '', namespace = '', name = ''] = id.split('/');
  return { kind, namespace, name };
}
