import type { AgentSession } from './agent-session.js';
import { Slots } from './slots.js';

/** An agent that was here a moment ago, for people. */
export interface LostAgent {
  readonly session: AgentSession;
  readonly lostAt: Date;
  readonly lostAtMs: number;
}

/** The place of this replica among all, for slots that do not collide. */
export interface ReplicaPlace {
  /** 0-based. */
  readonly index: number;
  readonly count: number;
}

const MAX_LOST = 1_000;
const LOST_FOR_MS = 10 * 60_000;
const NONE: ReadonlySet<AgentSession> = new Set();

/** The agents connected to this replica, and those lost within the last ten minutes (at most 1,000). */
export class AgentRegistry {
  private readonly byId = new Map<string, AgentSession>();
  private readonly byNamespace = new Map<string, Set<AgentSession>>();
  private readonly services = new Map<string, number>();
  private readonly slots = new Map<string, Slots>();
  private readonly lost = new Map<string, LostAgent>();
  private changes = 0;

  get size(): number {
    return this.byId.size;
  }

  /** Counts up at each coming and going. */
  get version(): number {
    return this.changes;
  }

  get(id: string): AgentSession | undefined {
    return this.byId.get(id);
  }

  sessions(): IterableIterator<AgentSession> {
    return this.byId.values();
  }

  of(namespace: string): ReadonlySet<AgentSession> {
    return this.byNamespace.get(namespace) ?? NONE;
  }

  /** Live agents of a service on this replica. */
  serviceAgents(namespace: string, service: string): number {
    return this.services.get(`${namespace}/${service}`) ?? 0;
  }

  serviceCounts(): ReadonlyMap<string, number> {
    return this.services;
  }

  /** A slot of the namespace's row of phases. Every replica has its own residue, so that two do not give the same. */
  takeSlot(namespace: string, place: ReplicaPlace): { slot: number; release: () => void } {
    const slots = this.slots.get(namespace) ?? new Slots();
    this.slots.set(namespace, slots);
    const own = slots.take();
    const release = (): void => {
      slots.give(own);
      // Names of namespaces come from agents: none is kept for good.
      if (slots.isUnused) this.slots.delete(namespace);
    };
    return { slot: own * place.count + place.index, release };
  }

  add(session: AgentSession): void {
    const { namespace, service } = session.identity;
    this.changes += 1;
    this.lost.delete(session.id);
    this.byId.set(session.id, session);
    const inNamespace = this.byNamespace.get(namespace) ?? new Set();
    this.byNamespace.set(namespace, inNamespace.add(session));
    this.count(`${namespace}/${service}`, 1);
  }

  /** @returns false when it was gone already, or another session has taken its place */
  remove(session: AgentSession, now: { at: Date; ms: number }): boolean {
    const { namespace, service } = session.identity;
    const inNamespace = this.byNamespace.get(namespace);
    if (inNamespace?.delete(session) !== true) return false;
    this.changes += 1;
    if (inNamespace.size === 0) this.byNamespace.delete(namespace);
    this.count(`${namespace}/${service}`, -1);
    if (this.byId.get(session.id) !== session) return false;
    this.byId.delete(session.id);
    this.remember({ session, lostAt: now.at, lostAtMs: now.ms });
    return true;
  }

  recentlyLost(nowMs: number): LostAgent[] {
    for (const [id, { lostAtMs }] of this.lost) if (nowMs - lostAtMs > LOST_FOR_MS) this.lost.delete(id);
    return [...this.lost.values()];
  }

  private remember(lost: LostAgent): void {
    this.lost.set(lost.session.id, lost);
    const oldest = this.lost.keys().next().value;
    if (this.lost.size > MAX_LOST && oldest !== undefined) this.lost.delete(oldest);
  }

  private count(service: string, by: number): void {
    const count = (this.services.get(service) ?? 0) + by;
    if (count === 0) this.services.delete(service);
    else this.services.set(service, count);
  }
}
