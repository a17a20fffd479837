import type { AgentKeyView, FleetState, KeyView, StoredVerdict } from '@bulwark/fleet';
import { compareVersions } from '@bulwark/resilience';
import type { ResiliencePolicy } from '@bulwark/policy';
import { thresholdText, type BreakerObject } from '@bulwark/views';
import { breakerName, keyHash } from '../fleet/breaker-name.js';
import { API_VERSION, type ApiObject } from '../objects/api-object.js';

type State = BreakerObject['status']['state'];

const STATES: Readonly<Record<FleetState, State>> = {
  closed: 'Closed',
  open: 'Open',
  'half-open': 'HalfOpen',
  recovering: 'Recovering',
};
const MAX_LOCALISED = 20;

/** A breaker as the decider sees it; `policy` is the stored object, undefined when it is gone. */
export function breakerObject(view: KeyView, policy: ApiObject | undefined): BreakerObject {
  const { key, verdict } = view;
  return {
    apiVersion: API_VERSION,
    kind: 'Breaker',
    metadata: {
      name: breakerName(key),
      namespace: key.namespace,
      uid: `${policy?.metadata.uid ?? key.policy}-${keyHash(key)}`,
      ...(policy?.metadata.creationTimestamp === undefined
        ? {}
        : { creationTimestamp: policy.metadata.creationTimestamp }),
      ...(policy?.metadata.labels === undefined ? {} : { labels: policy.metadata.labels }),
      ...(policy?.metadata.annotations === undefined
        ? {}
        : { annotations: shown(policy.metadata.annotations) }),
    },
    spec: { policy: key.policy, key: key.key, ...ofPolicy(policy as ResiliencePolicy | undefined) },
    status: {
      ...verdictStatus(verdict),
      agents: agentCounts(view.agents, verdict),
      calls: {
        perSecond: rounded(view.callsPerSecond),
        ...(view.failureRatio === undefined ? {} : { failureRatio: rounded(view.failureRatio) }),
        rejectedPerSecond: rounded(view.rejectedPerSecond),
      },
      ...(view.localised.length === 0 ? {} : { localised: view.localised.slice(0, MAX_LOCALISED) }),
      ...(view.note === undefined ? {} : { note: view.note }),
    },
  };
}

/** What is known of a breaker while nobody decides: the stored verdict. */
export function storedView(verdict: StoredVerdict, note: string): KeyView {
  return {
    key: verdict.key,
    verdict,
    agents: [],
    callsPerSecond: 0,
    failureRatio: undefined,
    rejectedPerSecond: 0,
    localised: [],
    note,
  };
}

/** Owner and runbook are shown wherever the breaker is. */
function shown(annotations: Readonly<Record<string, string>>): Record<string, string> {
  const wanted = ['bulwark.dev/owner', 'bulwark.dev/runbook'];
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => wanted.includes(key)));
}

function ofPolicy(
  policy: ResiliencePolicy | undefined,
): Pick<BreakerObject['spec'], 'scope' | 'target' | 'threshold' | 'mode'> {
  const breaker = policy?.spec.circuitBreaker;
  return {
    scope: breaker?.scope ?? 'Fleet',
    target: policy?.spec.target.service ?? '',
    threshold: breaker === undefined ? '' : thresholdText(breaker.trip),
    ...(policy === undefined ? {} : { mode: policy.spec.mode ?? 'Enforce' }),
  };
}

type VerdictStatus = Omit<BreakerObject['status'], 'agents' | 'calls' | 'localised' | 'note'>;

function verdictStatus(verdict: StoredVerdict | undefined): VerdictStatus {
  if (verdict === undefined) return { state: 'Closed', era: 0, token: 0, epoch: 0, transitions: [] };
  const { version, state, forced, permit } = verdict;
  return {
    state: STATES[state],
    ...version,
    since: time(verdict.sinceUnixMs),
    reason: verdict.reason,
    message: verdict.message,
    ...(forced === undefined
      ? {}
      : {
          forced: {
            state: forced.state === 'open' ? 'Open' : 'Closed',
            by: forced.by,
            reason: forced.reason,
          } as const,
        }),
    ...(state === 'recovering' ? { share: percent(verdict.share) } : {}),
    ...(permit === undefined ? {} : { probe: { agent: permit.agent, calls: permit.calls } }),
    transitions: verdict.transitions.map((one) => ({
      time: time(one.unixMs),
      from: STATES[one.from],
      to: STATES[one.to],
      reason: one.reason,
      message: one.message,
      epoch: one.epoch,
    })),
  };
}

function agentCounts(
  agents: readonly AgentKeyView[],
  verdict: StoredVerdict | undefined,
): BreakerObject['status']['agents'] {
  const count = (holds: (agent: AgentKeyView) => boolean): number => agents.filter(holds).length;
  return {
    total: agents.length,
    open: count(({ localState }) => localState === 'open'),
    halfOpen: count(({ localState }) => localState === 'half-open'),
    closed: count(({ localState }) => localState === 'closed'),
    synced: count(({ inForce }) => isSynced(inForce, verdict)),
  };
}

function isSynced(inForce: AgentKeyView['inForce'], verdict: StoredVerdict | undefined): boolean {
  if (verdict === undefined) return true;
  return inForce !== undefined && compareVersions(inForce, verdict.version) >= 0;
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

function percent(share: number): string {
  return `${Math.round(share * 10_000) / 100}%`;
}

function time(unixMs: number): string {
  return new Date(unixMs).toISOString();
}
