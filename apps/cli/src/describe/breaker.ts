import type { ResiliencePolicy } from '@bulwark/policy';
import {
  admittedShare,
  decidedShare,
  effectiveState,
  NO_DATA,
  percentText,
  rateText,
  type BreakerObject,
} from '@bulwark/views';
import type { Context } from '../context.js';
import { breakerEntries, effectiveOf, scopeText } from './effective.js';
import type { DescribedTable, Entry } from './sections.js';
import { timeText } from './times.js';

export async function describeBreaker(breaker: BreakerObject, context: Context): Promise<readonly Entry[]> {
  const { metadata, spec, status } = breaker;
  const { namespace } = metadata;
  const place = { plural: 'resiliencepolicies', namespace, name: spec.policy } as const;
  const policy = (await context.api.find(place)) as unknown as ResiliencePolicy | undefined;
  const annotations = { ...policy?.metadata.annotations, ...metadata.annotations };
  const now = context.io.now();
  return [
    ['Name', metadata.name],
    ['Namespace', namespace],
    ['Policy', policy === undefined ? `${spec.policy} (deleted)` : spec.policy],
    ['Target', spec.target],
    ['Key', spec.key],
    ['Scope', scopeText(spec.scope)],
    ['Mode', modeText(breaker)],
    ['Owner', annotations['bulwark.dev/owner'] ?? NO_DATA],
    ['Runbook', annotations['bulwark.dev/runbook'] ?? NO_DATA],
    ['State', `${effectiveState(breaker)}${passing(breaker)}`],
    ['Since', timeText(status.since, now)],
    ['Why', why(status)],
    ['Forced', forcedText(status.forced)],
    ['Computed', status.forced === undefined || isOfInstances(breaker) ? undefined : status.state],
    ['Note', status.note],
    ['Trips at', spec.threshold],
    ...(await settingEntries(policy)),
    ...verdictEntries(breaker),
    ['Agents', agentsText(breaker)],
    ['Own breakers', ownText(status.agents)],
    ['Localised at', status.localised?.join(', ')],
    ['Calls', callsText(breaker)],
    ['Transitions', isOfInstances(breaker) ? undefined : transitions(status.transitions, now)],
  ];
}

type Status = BreakerObject['status'];

/** Such a breaker stands for the agents' own: permit, verdict and transitions are the fleet's. */
function isOfInstances({ spec }: BreakerObject): boolean {
  return spec.scope === 'Instance';
}

function verdictEntries(breaker: BreakerObject): readonly Entry[] {
  const { era, token, epoch, probe } = breaker.status;
  if (isOfInstances(breaker)) return [];
  return [
    ['Probe permit', permitText(probe)],
    ['Verdict', `era ${era}, token ${token}, epoch ${epoch}`],
  ];
}

function passing(breaker: BreakerObject): string {
  const share = admittedShare(breaker);
  if (share === NO_DATA) return '';
  return share === 'probe' ? ' (only the probe passes)' : ` (${share} of the calls pass)`;
}

/** What is decided in shadow mode is not carried out: forced states neither. */
function modeText(breaker: BreakerObject): string | undefined {
  const { mode } = breaker.spec;
  return mode === 'Shadow'
    ? `Shadow: decides and reports, changes nothing; would reject ${wouldReject(breaker)}`
    : mode;
}

function wouldReject(breaker: BreakerObject): string {
  const share = decidedShare(breaker);
  if (share === '0%') return 'every call';
  if (share === 'probe') return 'all calls but the probe';
  const { open, halfOpen } = breaker.status.agents;
  const own = breaker.status.forced === undefined && open + halfOpen > 0;
  if (share !== '100%' && share !== NO_DATA) return `all but ${share} of the calls`;
  return own ? 'calls only at the agents whose own breakers are not closed' : 'nothing';
}

function why({ reason, message }: Status): string {
  if (reason === undefined) return message ?? NO_DATA;
  return message === undefined ? reason : `${reason}: ${message}`;
}

function forcedText(forced: Status['forced']): string {
  if (forced === undefined) return 'no';
  const until = forced.until === undefined ? '' : ` until ${forced.until}`;
  return `${forced.state} by ${forced.by}${until}: ${forced.reason}`;
}

function permitText(probe: Status['probe']): string {
  if (probe === undefined) return 'none given';
  return `held by ${probe.agent} for ${probe.calls} ${probe.calls === 1 ? 'call' : 'calls'}`;
}

function agentsText(breaker: BreakerObject): string {
  const { total, synced } = breaker.status.agents;
  if (total === 0) return 'none reports this key';
  const verdict = isOfInstances(breaker) ? '' : `; ${synced} have the present verdict in force`;
  return `${total} report this key${verdict}`;
}

function ownText({ total, open, halfOpen, closed }: Status['agents']): string | undefined {
  return total === 0 ? undefined : `${open} open, ${halfOpen} half-open, ${closed} closed`;
}

function callsText({ status: { agents, calls } }: BreakerObject): string {
  if (agents.total === 0) return 'no data';
  const failures =
    calls.failureRatio === undefined ? 'no outcomes' : `${percentText(calls.failureRatio)} failures`;
  return `${rateText(calls.perSecond)}/s, ${failures}, ${rateText(calls.rejectedPerSecond)}/s rejected (averages of the last 10 s)`;
}

/** Newest last, so that a terminal ends with what is now. */
function transitions(all: Status['transitions'], now: number): DescribedTable {
  return {
    head: ['TIME', 'EPOCH', 'CHANGE', 'WHY'],
    rows: all.map((one) => [
      timeText(one.time, now),
      String(one.epoch),
      `${one.from} -> ${one.to}`,
      one.message === '' ? one.reason : `${one.reason}: ${one.message}`,
    ]),
  };
}

async function settingEntries(policy: ResiliencePolicy | undefined): Promise<readonly Entry[]> {
  const effective = policy === undefined ? undefined : await effectiveOf(policy);
  return effective === undefined
    ? []
    : breakerEntries(effective).filter(([label]) => label !== 'Trips at' && label !== 'Scope');
}
