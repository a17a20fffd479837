import type { CompiledPolicy } from '@bulwark/policy';
import type { SnapshotVersion } from '@bulwark/protocol';
import type { GuardTotals, LocalStateName } from '@bulwark/resilience';
import type { BypassState } from './bypass.js';
import type { StreamStatus } from './control-stream.js';
import type { PolicySet } from './policy-set.js';
import type { Snapshot } from './snapshot.js';

export interface Readiness {
  readonly ready: boolean;
  /** Why not; or, when ready, what a person should know. Empty = nothing. */
  readonly reason: string;
}

export interface BreakerStateView {
  readonly key: string;
  readonly state: LocalStateName;
  /** Who decided it: a person, the fleet, or this process alone. */
  readonly by: 'forced' | 'fleet' | 'local';
  readonly epoch: number | undefined;
}

export interface PolicyStateView {
  /** "namespace/name". */
  readonly policy: string;
  readonly generation: number;
  readonly service: string;
  readonly mode: 'enforce' | 'shadow';
  readonly breakers: readonly BreakerStateView[];
  /** Absent until the first call. */
  readonly totals: Readonly<GuardTotals> | undefined;
}

/** Everything a person asks an agent for. Plain data. */
export interface AgentState {
  readonly id: string;
  readonly incarnation: string;
  readonly readiness: Readiness;
  /** Set while every call passes unguarded because a person said so. */
  readonly bypass: BypassState | undefined;
  readonly version: SnapshotVersion | undefined;
  readonly controlPlane: StreamStatus & {
    /** Milliseconds since the control plane was last heard; undefined = never in this run. */
    readonly silentMs: number | undefined;
  };
  /** The policies are from disk and no control plane has confirmed them since: when they were kept, Unix milliseconds. */
  readonly keptAtUnixMs: number | undefined;
  readonly diskProblem: string | undefined;
  /** Why a policy's newest generation is not in force. */
  readonly refused: Readonly<Record<string, string>>;
  readonly policies: readonly PolicyStateView[];
}

export interface StateParts {
  readonly id: string;
  readonly incarnation: string;
  readonly nowMs: number;
  readonly nowUnixMs: number;
  readonly snapshot: Snapshot<CompiledPolicy>;
  readonly stream: StreamStatus;
  readonly lastContactMs: number | undefined;
  readonly savedAtUnixMs: number | undefined;
  readonly diskProblem: string | undefined;
  readonly refusals: Readonly<Record<string, string>>;
  readonly policies: PolicySet;
  readonly bypass: BypassState | undefined;
}

export function agentState(parts: StateParts): AgentState {
  const { nowMs, lastContactMs } = parts;
  return {
    id: parts.id,
    incarnation: parts.incarnation,
    readiness: readinessOf(parts),
    bypass: parts.bypass,
    version: parts.snapshot.version,
    controlPlane: {
      ...parts.stream,
      silentMs: lastContactMs === undefined ? undefined : Math.round(nowMs - lastContactMs),
    },
    keptAtUnixMs: lastContactMs === undefined ? parts.savedAtUnixMs : undefined,
    diskProblem: parts.diskProblem,
    refused: parts.refusals,
    policies: policyViews(parts.policies, nowMs),
  };
}

function readinessOf(parts: StateParts): Readiness {
  const { ready, reason } = policyReadiness(parts);
  if (parts.bypass === undefined) return { ready, reason };
  const why = parts.bypass.reason === '' ? '' : ` (${parts.bypass.reason})`;
  const until = new Date(parts.bypass.untilUnixMs).toISOString();
  return { ready, reason: join(`bypass until ${until}${why}: calls pass unguarded`, reason) };
}

function policyReadiness(parts: StateParts): Readiness {
  const { snapshot, stream, policies } = parts;
  const away = stream.state === 'connected' ? '' : describeAway(stream);
  if (snapshot.version === undefined && snapshot.resources.size === 0) {
    return { ready: false, reason: `no policy: ${away || 'waiting for the first policies'}` };
  }
  if (policies.applicable === 0) {
    const none =
      snapshot.version === undefined
        ? 'no policy of the bootstrap is for this agent'
        : 'no policy: the control plane has none for this agent';
    return { ready: true, reason: join(`${none}, its calls pass unguarded`, away) };
  }
  return { ready: true, reason: away === '' ? '' : join(whichPolicies(parts), away) };
}

function whichPolicies({ lastContactMs, savedAtUnixMs, nowMs, nowUnixMs }: StateParts): string {
  if (lastContactMs !== undefined) {
    return `last known policies, the control plane was last heard ${agoText(nowMs - lastContactMs)}`;
  }
  if (savedAtUnixMs === undefined) return 'policies of the bootstrap';
  return `policies from disk, kept ${agoText(nowUnixMs - savedAtUnixMs)}`;
}

/** Whole units, the largest that fits: "3m ago". A clock that went back gives "0s ago". */
function agoText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds}s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m ago`;
  if (seconds < 2 * 86_400) return `${Math.floor(seconds / 3_600)}h ago`;
  return `${Math.floor(seconds / 86_400)}d ago`;
}

function describeAway(stream: StreamStatus): string {
  const error = stream.lastError === undefined ? '' : `: ${stream.lastError}`;
  if (stream.state === 'none') return 'no control plane is named';
  if (stream.state === 'refused') return `the control plane refused this agent${error}`;
  return `not connected to the control plane at ${stream.address}${error}`;
}

function join(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('; ');
}

function policyViews(policies: PolicySet, nowMs: number): PolicyStateView[] {
  const guards = new Map([...policies.guards()].map(({ policy, guard }) => [policy, guard]));
  return [...policies.policies].map(([id, policy]) => {
    const guard = guards.get(policy);
    const breakers = [...(guard?.gates() ?? [])].map((gate) => ({
      key: gate.key,
      ...gate.stateAt(nowMs),
      epoch: gate.verdictAt(nowMs)?.version.epoch,
    }));
    return {
      policy: id,
      generation: policy.generation,
      service: policy.target.service,
      mode: policy.guard.mode,
      breakers,
      totals: guard && { ...guard.read() },
    };
  });
}
