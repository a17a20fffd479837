import type { ResiliencePolicy } from '@bulwark/policy';
import {
  admittedShare,
  effectiveState,
  worstFirst,
  type AgentObject,
  type BreakerObject,
} from '@bulwark/views';
import type { Context } from '../context.js';
import { listObjects } from '../get/lists.js';
import { breakerEntries, callEntries, effectiveOf, fallbackEntries } from './effective.js';
import type { DescribedTable, Entry } from './sections.js';
import { mapText, timeText } from './times.js';

export async function describePolicy(policy: ResiliencePolicy, context: Context): Promise<readonly Entry[]> {
  const { metadata, spec } = policy;
  const namespace = metadata.namespace ?? context.namespace;
  const effective = await effectiveOf(policy);
  const [agents, breakers] = await Promise.all([
    listObjects(context.api, { plural: 'agents', namespace }, {}),
    listObjects(context.api, { plural: 'breakers', namespace }, {}),
  ]);
  return [
    ['Name', metadata.name],
    ['Namespace', namespace],
    ['Labels', mapText(metadata.labels)],
    ['Annotations', mapText(metadata.annotations)],
    ['Created', timeText(metadata.creationTimestamp, context.io.now())],
    ['Generation', `${metadata.generation ?? '-'}${observedText(policy)}`],
    ['Target', [spec.target.service, ...(spec.target.operations ?? [])].join('\n')],
    [
      'Callers',
      spec.callers === undefined ? 'every agent of the namespace' : mapText(spec.callers.matchLabels),
    ],
    ['Contract', spec.contract ?? 'optional'],
    ['Mode', spec.mode ?? 'Enforce'],
    ['Rollout', spec.rollout?.strategy ?? '<none>'],
    ...(effective === undefined
      ? [['Guard', 'this command is older than the server and cannot read it; see -o yaml'] as const]
      : ([
          ['Calls', callEntries(effective)],
          ['Breaker', breakerEntries(effective)],
          ['Fallbacks', fallbackText(fallbackEntries(effective))],
        ] as const)),
    ['Agents', runningTable(metadata.name, agents.items as unknown as readonly AgentObject[])],
    ['Breakers', breakerTable(metadata.name, breakers.items as unknown as readonly BreakerObject[])],
    ['Conditions', conditionTable(policy)],
  ];
}

function observedText({ metadata, status }: ResiliencePolicy): string {
  const observed = status?.observedGeneration;
  return observed === undefined || observed === metadata.generation
    ? ''
    : ` (the status speaks of ${observed})`;
}

function fallbackText(entries: readonly Entry[]): string | readonly Entry[] {
  return entries.length === 0 ? 'none: failures reach the caller' : entries;
}

/** Who runs which generation: one row a generation, the newest first, refusals apart with their reason. */
function runningTable(policy: string, agents: readonly AgentObject[]): DescribedTable {
  const rows = new Map<string, { readonly cells: readonly string[]; readonly names: string[] }>();
  for (const agent of agents) {
    const held = agent.status.policies.find((one) => one.name === policy);
    if (held === undefined) continue;
    const state = held.accepted ? (agent.status.phase === 'Lost' ? 'lost' : 'running') : 'refused';
    const cells = [String(held.generation), state, held.reason ?? ''];
    const row = rows.get(cells.join('\n')) ?? { cells, names: [] };
    row.names.push(agent.metadata.name);
    rows.set(cells.join('\n'), row);
  }
  const sorted = [...rows.values()].sort((a, b) => Number(b.cells[0]) - Number(a.cells[0]));
  return {
    head: ['GENERATION', 'STATE', 'COUNT', 'AGENTS', 'REASON'],
    rows: sorted.map(({ cells: [generation = '', state = '', reason = ''], names }) => [
      generation,
      state,
      String(names.length),
      namesText(names),
      reason,
    ]),
  };
}

const SHOWN_NAMES = 4;

function namesText(names: readonly string[]): string {
  const shown = [...names].sort().slice(0, SHOWN_NAMES).join(', ');
  return names.length <= SHOWN_NAMES ? shown : `${shown} and ${names.length - SHOWN_NAMES} more`;
}

function breakerTable(policy: string, breakers: readonly BreakerObject[]): DescribedTable {
  const own = worstFirst(breakers.filter((one) => one.spec.policy === policy));
  return {
    head: ['NAME', 'STATE', 'SHARE', 'KEY'],
    rows: own.map((one) => [one.metadata.name, effectiveState(one), admittedShare(one), one.spec.key]),
  };
}

function conditionTable({ status }: ResiliencePolicy): DescribedTable {
  return {
    head: ['TYPE', 'STATUS', 'REASON', 'MESSAGE'],
    rows: (status?.conditions ?? []).map((one) => [
      one.type,
      one.status,
      one.reason ?? '',
      one.message ?? '',
    ]),
  };
}
