import type { AgentIdentity } from './contract.js';

/** One start of one agent, as far as this decider heard of it. */
export interface AgentEntry {
  readonly identity: AgentIdentity;
  up: boolean;
  /** When it went down; meaningless while it is up. */
  downMs: number;
  /** Sequence of the newest report; 0 = none yet. */
  sequence: number;
  /** Receipt of the newest report; -Infinity = none yet. */
  reportedMs: number;
  /** Every report since its very first was for this decider: what is unknown here did not exist before. */
  sinceBirth: boolean;
  /** What it said of the keys it calls; left when it is gone for good. */
  readonly series: Set<{ leave(): void }>;
}

/** A broken stream comes back with the same incarnation: its counts are kept so long. */
const KEEP_ABSENT_MS = 60_000;

/** Who is there. Late words of an incarnation that was replaced are not heard. */
export class AgentRoster {
  private readonly agents = new Map<string, AgentEntry>();
  private sweptMs = -Infinity;

  /** The entry of this very incarnation. */
  find(agent: { readonly id: string; readonly incarnation: string }): AgentEntry | undefined {
    const entry = this.agents.get(agent.id);
    return entry?.identity.incarnation === agent.incarnation ? entry : undefined;
  }

  /** Answers the incarnation that this one replaces. */
  up(identity: AgentIdentity): AgentEntry | undefined {
    const former = this.agents.get(identity.id);
    if (former?.identity.incarnation === identity.incarnation) {
      former.up = true;
      return undefined;
    }
    this.agents.set(identity.id, {
      identity,
      up: true,
      downMs: 0,
      sequence: 0,
      reportedMs: -Infinity,
      sinceBirth: false,
      series: new Set(),
    });
    return former;
  }

  /** Forgets those that have been away too long, now and then; answers them. */
  sweep(nowMs: number): AgentEntry[] {
    if (nowMs - this.sweptMs < KEEP_ABSENT_MS / 6) return [];
    this.sweptMs = nowMs;
    const gone = [...this.agents.values()].filter(
      (entry) => !entry.up && nowMs - entry.downMs >= KEEP_ABSENT_MS,
    );
    for (const entry of gone) this.agents.delete(entry.identity.id);
    return gone;
  }
}
