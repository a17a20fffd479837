import type { ApiObject } from '../objects/api-object.js';

/** How many live agents a policy concerns, over all replicas. */
export interface PolicyCounts {
  readonly matched: number;
  /** Have this generation in force. */
  readonly running: number;
  readonly refused: number;
  /** Why one of those refused it. */
  readonly refusal: string | undefined;
  /** Live replicas whose agents are not among these, since they do not answer. */
  readonly silentReplicas: number;
}

export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}

export interface PolicyStatus {
  readonly observedGeneration: number;
  readonly agents: { readonly matched: number; readonly running: number; readonly refused: number };
  readonly conditions: readonly Condition[];
}

export interface StatusInput {
  readonly policy: ApiObject;
  readonly usable: boolean;
  readonly counts: PolicyCounts;
  readonly shadowedBy: readonly string[];
  /** The status shown before; its transition times live on where nothing changed. */
  readonly former: PolicyStatus | undefined;
  /** RFC 3339. */
  readonly now: string;
}

type Verdict = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** What the server says about a policy. Computed, never stored. */
export function policyStatus(input: StatusInput): PolicyStatus {
  const { matched, running, refused } = input.counts;
  const observedGeneration = input.policy.metadata.generation ?? 1;
  const verdicts = [accepted(input), distributed(input.counts), shadowedCondition(input.shadowedBy)];
  return {
    observedGeneration,
    agents: { matched, running, refused },
    conditions: verdicts.map((verdict) => {
      const before = input.former?.conditions.find(({ type }) => type === verdict.type);
      const lastTransitionTime = before?.status === verdict.status ? before.lastTransitionTime : input.now;
      return { ...verdict, observedGeneration, lastTransitionTime };
    }),
  };
}

function accepted({ usable, counts }: StatusInput): Verdict {
  const type = 'Accepted';
  if (!usable) {
    const message = 'this version of the server cannot make sense of the stored policy; apply it again';
    return { type, status: 'False', reason: 'NotUnderstood', message };
  }
  if (counts.refused === 0) return { type, status: 'True', reason: 'Valid', message: 'the policy is valid' };
  const why = counts.refusal === undefined ? '' : `: ${counts.refusal}`;
  const message = `${counts.refused} of ${counts.matched} agents refused it and keep the former generation${why}`;
  return { type, status: 'False', reason: 'RefusedByAgents', message };
}

function distributed({ matched, running, refused, silentReplicas }: PolicyCounts): Verdict {
  const type = 'Distributed';
  if (silentReplicas > 0 && running === matched) {
    const who = silentReplicas === 1 ? 'one replica does' : `${silentReplicas} replicas do`;
    const message = `${who} not answer; of the agents of the others ${running}/${matched} have it in force`;
    return { type, status: 'Unknown', reason: 'ReplicasSilent', message };
  }
  if (matched === 0) {
    return {
      type,
      status: 'Unknown',
      reason: 'NoAgents',
      message: 'no connected agent is among its callers',
    };
  }
  const message = `${running}/${matched} agents have it in force`;
  if (running === matched) return { type, status: 'True', reason: 'InForce', message };
  return { type, status: 'False', reason: refused > 0 ? 'RefusedByAgents' : 'Distributing', message };
}

function shadowedCondition(by: readonly string[]): Verdict {
  const type = 'Shadowed';
  if (by.length === 0) {
    return { type, status: 'False', reason: 'Matches', message: 'no other policy takes all its calls' };
  }
  return {
    type,
    status: 'True',
    reason: 'OthersWin',
    message: `every call it matches is guarded by ${by.join(', ')}`,
  };
}
