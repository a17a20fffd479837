import type {
  AgentIdentity,
  AgentReport,
  BreakerKey,
  KeyCounts,
  LocalState,
  ProbeResult,
  StepCounts,
} from '@bulwark/fleet';
import {
  BreakerState,
  ProbeOutcome,
  agentId,
  type AgentIdentity as AgentMessage,
  type KeyReport,
  type Report,
} from '@bulwark/protocol';

const MAX_KEYS = 2_000;
const MAX_KEY_BYTES = 512;
const MAX_RULE = 128;

/** What an agent says, checked: an agent reports for its own namespace only, and with numbers that can be counted. */
export interface CheckedReport {
  readonly report: AgentReport;
  /** Keys that were left out because they cannot be right. */
  readonly refused: number;
}

/** @returns undefined when nothing of it can be used */
export function checkReport(
  report: Report,
  agent: { namespace: string; incarnation: string },
): CheckedReport | undefined {
  if (report.incarnation !== agent.incarnation || !isCount(report.sequence) || !isCount(report.coversMs))
    return undefined;
  const keys: KeyCounts[] = [];
  for (const key of report.keys.slice(0, MAX_KEYS)) {
    const counts = keyCounts(key, agent.namespace);
    if (counts !== undefined) keys.push(counts);
  }
  const { incarnation, sequence, coversMs, pollId } = report;
  return {
    report: { incarnation, sequence, coversMs, pollId, keys },
    refused: report.keys.length - keys.length,
  };
}

function keyCounts(message: KeyReport, namespace: string): KeyCounts | undefined {
  const { key, rule, successes, failures, slow, ignored, rejected } = message;
  if (key === undefined || !isKey(key) || key.namespace !== namespace || rule.length > MAX_RULE)
    return undefined;
  const counts = [
    successes,
    failures,
    slow,
    ignored,
    rejected,
    message.runFailures,
    message.successesSinceFailure,
  ];
  if (!counts.every(isCount) || slow > successes + failures) return undefined;
  return {
    key: { namespace: key.namespace, policy: key.policy, key: key.key },
    rule,
    successes,
    failures,
    slow,
    ignored,
    rejected,
    runFailures: message.runFailures,
    runFirstFailureAgeMs: message.runFirstFailureAgeMs,
    successesSinceFailure: message.successesSinceFailure,
    lastSuccessAgeMs: message.lastSuccessAgeMs,
    localState: localState(message.localState),
    inForce: message.inForce,
    probe: probeResult(message),
    step: stepCounts(message),
  };
}

function isKey({ policy, key }: BreakerKey): boolean {
  return (
    policy.length > 0 && policy.length <= 63 && key.length > 0 && Buffer.byteLength(key) <= MAX_KEY_BYTES
  );
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function localState(state: BreakerState): LocalState {
  if (state === BreakerState.BREAKER_STATE_CLOSED) return 'closed';
  if (state === BreakerState.BREAKER_STATE_OPEN) return 'open';
  return state === BreakerState.BREAKER_STATE_HALF_OPEN ? 'half-open' : 'unknown';
}

function probeResult({ probe }: KeyReport): ProbeResult | undefined {
  if (probe?.version === undefined || !isCount(probe.calls)) return undefined;
  const outcome = probeOutcome(probe.outcome);
  return outcome === undefined ? undefined : { version: probe.version, outcome, calls: probe.calls };
}

function probeOutcome(outcome: ProbeOutcome): ProbeResult['outcome'] | undefined {
  if (outcome === ProbeOutcome.PROBE_OUTCOME_SUCCESS) return 'success';
  if (outcome === ProbeOutcome.PROBE_OUTCOME_FAILURE) return 'failure';
  return outcome === ProbeOutcome.PROBE_OUTCOME_NONE ? 'none' : undefined;
}

function stepCounts({ step }: KeyReport): StepCounts | undefined {
  if (step === undefined) return undefined;
  const { offered, admitted, successes, failures, slow } = step;
  return [offered, admitted, successes, failures, slow].every(isCount)
    ? { offered, admitted, successes, failures, slow }
    : undefined;
}

export function identityMessage(agent: AgentIdentity): AgentMessage {
  const [namespace = '', service = '', instance = ''] = agent.id.split('/');
  return { namespace, service, instance, incarnation: agent.incarnation, labels: { ...agent.labels } };
}

export function identityFromMessage(message: AgentMessage): AgentIdentity {
  const { namespace, service, incarnation, labels } = message;
  return { id: agentId(message), incarnation, namespace, service, labels };
}
