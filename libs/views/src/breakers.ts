import { ageText } from './age.js';
import { plain, type Column } from './column.js';
import { NO_DATA, percentText, rateText } from './numbers.js';
import type { BreakerObject } from './objects.js';

type DecidedState = 'ForcedOpen' | 'Open' | 'HalfOpen' | 'Recovering' | 'Partial' | 'ForcedClosed' | 'Closed';

/**
 * What holds for calls, in one word: a forced state before the computed one; Partial = closed for the fleet while
 * breakers of single agents are not. "Shadow(Open)" is what is decided where nothing is carried out.
 */
export type EffectiveState = DecidedState | `Shadow(${DecidedState})`;

/** Worst first. */
const ORDER: readonly DecidedState[] = [
  'Open',
  'ForcedOpen',
  'HalfOpen',
  'Recovering',
  'Partial',
  'ForcedClosed',
  'Closed',
];

export function effectiveState(breaker: BreakerObject): EffectiveState {
  const decided = decidedState(breaker);
  return isShadow(breaker) ? `Shadow(${decided})` : decided;
}

function isShadow({ spec }: BreakerObject): boolean {
  return spec.mode === 'Shadow';
}

/** Each agent decides alone: there is no decision of the fleet, and no verdict. */
function isOfInstances({ spec }: BreakerObject): boolean {
  return spec.scope === 'Instance';
}

function decidedState({ status }: BreakerObject): DecidedState {
  if (status.forced !== undefined) return status.forced.state === 'Open' ? 'ForcedOpen' : 'ForcedClosed';
  if (status.state === 'Closed' && status.agents.open + status.agents.halfOpen > 0) return 'Partial';
  return status.state;
}

/**
 * The share of calls that pass: "0%", "25%", "100%"; "probe" while one is asked for or under way; "-" = not known, as
 * in scope Instance where some agents stop theirs.
 */
export function admittedShare(breaker: BreakerObject): string {
  return isShadow(breaker) ? '100%' : decidedShare(breaker);
}

/** As `admittedShare`, as if the policy were enforced. */
export function decidedShare(breaker: BreakerObject): string {
  const { forced, share, state } = breaker.status;
  if (forced !== undefined) return forced.state === 'Open' ? '0%' : '100%';
  switch (state) {
    case 'Open':
      return '0%';
    case 'HalfOpen':
      return 'probe';
    case 'Recovering':
      return share ?? NO_DATA;
    case 'Closed':
      return isOfInstances(breaker) && decidedState(breaker) === 'Partial' ? NO_DATA : '100%';
  }
}

/** Worst state first, those in shadow mode last; then most failures, then most calls, then the name. A new array. */
export function worstFirst(breakers: readonly BreakerObject[]): BreakerObject[] {
  const failing = ({ status }: BreakerObject) => status.calls.failureRatio ?? -1;
  return [...breakers].sort(
    (a, b) =>
      Number(isShadow(a)) - Number(isShadow(b)) ||
      ORDER.indexOf(decidedState(a)) - ORDER.indexOf(decidedState(b)) ||
      failing(b) - failing(a) ||
      b.status.calls.perSecond - a.status.calls.perSecond ||
      compare(a.metadata.namespace, b.metadata.namespace) ||
      compare(a.metadata.name, b.metadata.name),
  );
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Own breakers stand still under a verdict that is open, so there it is who has that verdict in force. */
function openAgents(breaker: BreakerObject): number {
  const { open, synced } = breaker.status.agents;
  const state = decidedState(breaker);
  return state === 'Open' || state === 'ForcedOpen' ? Math.max(open, synced) : open;
}

function outOf(breaker: BreakerObject, count: number): string {
  const { total } = breaker.status.agents;
  return total === 0 ? NO_DATA : `${count}/${total}`;
}

/** A breaker nobody reports has no counts; that is not zero calls. */
function reported(breaker: BreakerObject, text: string): string {
  return breaker.status.agents.total === 0 ? NO_DATA : text;
}

function ofVerdict(breaker: BreakerObject, text: string): string {
  return isOfInstances(breaker) ? NO_DATA : text;
}

function forcedText({ status }: BreakerObject): string {
  return status.forced === undefined ? NO_DATA : plain(`${status.forced.state} by ${status.forced.by}`);
}

function probeText({ status: { probe } }: BreakerObject): string {
  return probe === undefined ? NO_DATA : plain(`${probe.agent} (${probe.calls})`);
}

export const breakerColumns: readonly Column<BreakerObject>[] = [
  {
    name: 'NAME',
    description: 'Policy and hash of the key.',
    priority: 0,
    shape: 'name',
    cell: (it) => it.metadata.name,
  },
  {
    name: 'STATE',
    room: 'Recovering'.length,
    description:
      'What holds for calls: forced before computed. Partial = only single agents are not closed. Shadow(...) = all calls pass, and this is what would hold.',
    priority: 0,
    cell: effectiveState,
  },
  {
    name: 'OPEN',
    description:
      'Agents that stop the calls (in shadow mode: would), by the verdict or by their own breaker, of those that report this key.',
    priority: 0,
    shape: 'number',
    cell: (it) => outOf(it, openAgents(it)),
  },
  {
    name: 'SHARE',
    description: 'Share of calls that pass.',
    priority: 0,
    shape: 'number',
    cell: admittedShare,
  },
  {
    name: 'CALLS/S',
    description: 'Calls a second, the average of the last 10 s.',
    priority: 0,
    shape: 'live',
    cell: (it) => reported(it, rateText(it.status.calls.perSecond)),
  },
  {
    name: 'ERROR',
    description: 'Share of failures among the calls of the last 10 s.',
    priority: 0,
    shape: 'live',
    room: '100.0%'.length,
    cell: (it) => reported(it, percentText(it.status.calls.failureRatio)),
  },
  {
    name: 'REJECTED/S',
    description: 'Calls rejected a second, the average of the last 10 s.',
    priority: 0,
    shape: 'live',
    cell: (it) => reported(it, rateText(it.status.calls.rejectedPerSecond)),
  },
  {
    name: 'SINCE',
    description: 'Time in the present state.',
    priority: 0,
    shape: 'age',
    cell: (it, now) => (it.status.since === undefined ? NO_DATA : ageText(it.status.since, now)),
  },
  {
    name: 'KEY',
    description: 'What the breaker is kept for.',
    priority: 0,
    cell: (it) => plain(it.spec.key),
  },
  { name: 'POLICY', description: 'Policy that guards it.', priority: 1, cell: (it) => it.spec.policy },
  { name: 'TARGET', description: 'Service it guards.', priority: 1, cell: (it) => it.spec.target },
  { name: 'SCOPE', description: 'Who decides and obeys together.', priority: 1, cell: (it) => it.spec.scope },
  { name: 'THRESHOLD', description: 'What trips it.', priority: 1, cell: (it) => plain(it.spec.threshold) },
  {
    name: 'COMPUTED',
    description: "The fleet's own decision.",
    priority: 1,
    cell: (it) => ofVerdict(it, it.status.state),
  },
  { name: 'FORCED', description: 'State set by a person.', priority: 1, cell: forcedText },
  {
    name: 'OWN-OPEN',
    description: 'Agents whose own breaker is open.',
    priority: 1,
    shape: 'number',
    cell: (it) => outOf(it, it.status.agents.open),
  },
  {
    name: 'OWN-HALF',
    description: 'Agents whose own breaker is half-open.',
    priority: 1,
    shape: 'number',
    cell: (it) => outOf(it, it.status.agents.halfOpen),
  },
  {
    name: 'SYNCED',
    description: 'Agents that have the present verdict in force.',
    priority: 1,
    shape: 'number',
    cell: (it) => ofVerdict(it, outOf(it, it.status.agents.synced)),
  },
  {
    name: 'EPOCH',
    description: 'Counts changes of the verdict.',
    priority: 1,
    shape: 'number',
    cell: (it) => ofVerdict(it, String(it.status.epoch)),
  },
  { name: 'PROBE', description: 'Agent that holds the probe permit (calls).', priority: 1, cell: probeText },
  {
    name: 'NOTE',
    description: 'What it waits for, or why it does not trip.',
    priority: 1,
    shape: 'remark',
    cell: (it) => plain(it.status.note || NO_DATA),
  },
];
