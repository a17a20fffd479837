import type { ResiliencePolicy } from '@bulwark/policy';
import { ageText } from './age.js';
import { plain, type Column } from './column.js';
import { EMPTY, NO_DATA } from './numbers.js';

type Spec = ResiliencePolicy['spec'];
type Trip = NonNullable<Spec['circuitBreaker']>['trip'];
type RateWindow = NonNullable<Trip['failureRate']>['window'];

/** What an absent `timeout.total`, `retry.maxAttempts`, `retry.budget.ratio` and window mean; the policy library's defaults. */
const ABSENT = { total: '10s', maxAttempts: 3, budgetRatio: '10%', window: '10s' } as const;

/** What trips a breaker, for people: "50%/10s", "slow 80%>500ms/10s", "10 consecutive", joined by " or ". */
export function thresholdText(trip: Trip): string {
  const rules: string[] = [];
  if (trip.failureRate) rules.push(`${trip.failureRate.ratio}/${windowText(trip.failureRate.window)}`);
  if (trip.slowRate) {
    const { ratio, slowerThan, window } = trip.slowRate;
    rules.push(`slow ${ratio}>${slowerThan}/${windowText(window)}`);
  }
  if (trip.consecutiveFailures !== undefined) rules.push(`${trip.consecutiveFailures} consecutive`);
  return rules.join(' or ') || NO_DATA;
}

function windowText(window: RateWindow): string {
  if (window === undefined) return ABSENT.window;
  return typeof window === 'string' ? window : `${window.calls} calls`;
}

function targetText({ target }: Spec): string {
  const count = target.operations?.length ?? 0;
  if (count === 0) return target.service;
  return `${target.service} (${count} ${count === 1 ? 'operation' : 'operations'})`;
}

function timeoutText({ timeout }: Spec): string {
  const total = timeout?.total ?? ABSENT.total;
  return timeout?.attempt === undefined ? total : `${timeout.attempt}/${total}`;
}

function retryText({ retry }: Spec): string {
  if (retry === undefined) return NO_DATA;
  return `${retry.maxAttempts ?? ABSENT.maxAttempts} (${retry.budget?.ratio ?? ABSENT.budgetRatio})`;
}

function breakerText({ circuitBreaker, mode }: Spec): string {
  if (circuitBreaker === undefined) return NO_DATA;
  return `${thresholdText(circuitBreaker.trip)}${mode === 'Shadow' ? ' (shadow)' : ''}`;
}

function bulkheadText({ bulkhead }: Spec): string {
  if (bulkhead === undefined) return NO_DATA;
  const { maxConcurrent, maxQueued = 0, adaptive } = bulkhead;
  const most = adaptive === 'gradient' ? `≤${maxConcurrent}` : String(maxConcurrent);
  return maxQueued === 0 ? most : `${most}+${maxQueued}`;
}

function fallbackText({ fallback = [] }: Spec): string {
  return fallback.flatMap((one) => Object.keys(one)).join(',') || EMPTY;
}

function syncedText({ status }: ResiliencePolicy): string {
  const agents = status?.agents;
  if (agents?.matched === undefined) return NO_DATA;
  const refused = agents.refused ?? 0;
  return `${agents.running ?? 0}/${agents.matched}${refused === 0 ? '' : ` (${refused} refused)`}`;
}

function conditionsText({ status }: ResiliencePolicy): string {
  const conditions = status?.conditions ?? [];
  const shown = conditions.map((one) => (one.status === 'True' ? one.type : `${one.type}=${one.status}`));
  return plain(shown.join(',')) || EMPTY;
}

export const policyColumns: readonly Column<ResiliencePolicy>[] = [
  { name: 'NAME', description: 'Its name.', priority: 0, shape: 'name', cell: (it) => it.metadata.name },
  { name: 'TARGET', description: 'Guarded service.', priority: 0, cell: (it) => plain(targetText(it.spec)) },
  { name: 'TIMEOUT', description: '[attempt/]total.', priority: 0, cell: (it) => timeoutText(it.spec) },
  { name: 'RETRY', description: 'Attempts in all (budget).', priority: 0, cell: (it) => retryText(it.spec) },
  { name: 'BREAKER', description: 'What trips it.', priority: 0, cell: (it) => breakerText(it.spec) },
  {
    name: 'BULKHEAD',
    description: 'Calls at once [+ queued].',
    priority: 0,
    cell: (it) => bulkheadText(it.spec),
  },
  {
    name: 'GEN',
    description: 'Generation of the spec.',
    priority: 0,
    shape: 'number',
    cell: (it) => String(it.metadata.generation ?? NO_DATA),
  },
  {
    name: 'SYNCED',
    description: 'Agents that run this generation, of those it is for.',
    priority: 0,
    cell: syncedText,
  },
  {
    name: 'AGE',
    description: 'Since it was made.',
    priority: 0,
    shape: 'age',
    cell: (it, now) => ageText(it.metadata.creationTimestamp, now),
  },
  { name: 'MODE', description: 'Enforce or Shadow.', priority: 1, cell: (it) => it.spec.mode ?? 'Enforce' },
  {
    name: 'CONTRACT',
    description: 'Whether the caller can do without it.',
    priority: 1,
    cell: (it) => it.spec.contract ?? 'optional',
  },
  {
    name: 'SCOPE',
    description: 'Who decides and obeys together.',
    priority: 1,
    cell: ({ spec }) =>
      spec.circuitBreaker === undefined ? NO_DATA : (spec.circuitBreaker.scope ?? 'Fleet'),
  },
  { name: 'FALLBACK', description: 'Tried in order.', priority: 1, cell: (it) => fallbackText(it.spec) },
  {
    name: 'ROLLOUT',
    description: 'Strategy of its changes.',
    priority: 1,
    cell: (it) => it.spec.rollout?.strategy ?? NO_DATA,
  },
  { name: 'CONDITIONS', description: 'True, unless =Status stands.', priority: 1, cell: conditionsText },
];
