import type { BreakerKey } from '@bulwark/fleet';
import { resourceId, type Poll, type Verdict, type VerdictUpdate } from '@bulwark/protocol';
import type { AgentRegistry } from '../distribution/agent-registry.js';
import { encode, type AgentSession } from '../distribution/agent-session.js';
import type { Distribution } from '../distribution/distribution.js';
import { POLICIES } from '../objects/policy-kind.js';
import { keyId } from './breaker-name.js';
import type { VerdictBoard } from './verdict-board.js';

export interface FanoutOptions {
  readonly registry: AgentRegistry;
  readonly distribution: Pick<Distribution, 'desired'>;
  readonly board: VerdictBoard;
}

/** Brings verdicts and polls to this replica's own agents: to those only that have the policy. */
export class VerdictFanout {
  constructor(private readonly options: FanoutOptions) {}

  /** One message a policy, serialised once for all its agents. */
  send({ verdicts, removed }: VerdictUpdate): void {
    const policies = new Map<string, { namespace: string; policy: string; update: VerdictUpdate }>();
    const of = ({ namespace, policy }: BreakerKey): VerdictUpdate => {
      const id = `${namespace}/${policy}`;
      const known = policies.get(id) ?? { namespace, policy, update: { verdicts: [], removed: [] } };
      policies.set(id, known);
      return known.update;
    };
    for (const verdict of verdicts) if (verdict.key) of(verdict.key).verdicts.push(stamped(verdict));
    for (const key of removed) of(key).removed.push(key);
    for (const { namespace, policy, update } of policies.values()) {
      const shared = sharedVerdicts(update);
      for (const session of this.options.registry.of(namespace)) {
        // Removals go to all: the policy may have left the agent's wishes already.
        if (update.removed.length > 0 || this.has(session, policy)) session.sendVerdicts(shared);
      }
    }
  }

  /** What a new agent must know at once, right after its first update. */
  greet(session: AgentSession, nowMs: number): void {
    const { namespace } = session.identity;
    const verdicts = this.options.board.alive(
      nowMs,
      (key) => key.namespace === namespace && this.has(session, key.policy),
    );
    if (verdicts.length > 0)
      session.sendVerdicts(sharedVerdicts({ verdicts: verdicts.map(stamped), removed: [] }));
  }

  /** @param agents ids; empty = all that have one of the policies */
  poll(poll: Poll, agents: readonly string[]): void {
    const bytes = encode({ message: { $case: 'poll', value: poll } });
    for (const session of agents.length > 0 ? this.named(agents) : this.concerned(poll.keys))
      session.sendPoll(bytes);
  }

  private named(agents: readonly string[]): AgentSession[] {
    return agents.flatMap((id) => this.options.registry.get(id) ?? []);
  }

  private concerned(keys: readonly BreakerKey[]): Set<AgentSession> {
    const found = new Set<AgentSession>();
    for (const { namespace, policy } of keys) {
      for (const session of this.options.registry.of(namespace))
        if (this.has(session, policy)) found.add(session);
    }
    return found;
  }

  private has(session: AgentSession, policy: string): boolean {
    const { namespace } = session.identity;
    return this.options.distribution
      .desired(session)
      .has(resourceId({ kind: POLICIES, namespace, name: policy }));
  }
}

/** On this replica's clock, also when the verdict came from another one: agents compare with one clock a stream. */
function stamped(verdict: Verdict): Verdict {
  return { ...verdict, senderMs: performance.now() };
}

function sharedVerdicts(update: VerdictUpdate): {
  verdicts: Map<string, Verdict>;
  removed: Map<string, BreakerKey>;
  bytes: Buffer;
} {
  return {
    verdicts: new Map(update.verdicts.flatMap((one) => (one.key ? [[keyId(one.key), one] as const] : []))),
    removed: new Map(update.removed.map((key) => [keyId(key), key] as const)),
    bytes: encode({ message: { $case: 'verdicts', value: update } }),
  };
}
