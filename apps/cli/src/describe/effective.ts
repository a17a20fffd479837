import type { CompiledPolicy, ResiliencePolicy } from '@bulwark/policy';
import { NO_DATA, thresholdText } from '@bulwark/views';
import type { Entry } from './sections.js';

/** A policy with all its defaults, and how to write its values. */
export interface Effective {
  readonly policy: ResiliencePolicy;
  readonly compiled: CompiledPolicy;
  readonly span: (ms: number) => string;
  readonly percent: (ratio: number) => string;
}

/** Undefined when this program's rules refuse what a (newer) server holds. */
export async function effectiveOf(stored: ResiliencePolicy): Promise<Effective | undefined> {
  const { compilePolicy, formatDuration, formatPercent, validatePolicy } = await import('@bulwark/policy');
  const checked = validatePolicy(stored);
  if (!checked.ok) return undefined;
  const { metadata } = checked.policy;
  const identity = { uid: metadata.uid ?? '', generation: metadata.generation ?? 0, createdAtMs: 0 };
  const compiled = compilePolicy(checked.policy, identity);
  return { policy: checked.policy, compiled, span: formatDuration, percent: formatPercent };
}

export function callEntries({ compiled: { guard }, span, percent }: Effective): readonly Entry[] {
  const { timeout, retry, bulkhead } = guard;
  const attempt =
    timeout.attemptMs === undefined
      ? 'what is left of it for an attempt'
      : `${span(timeout.attemptMs)} an attempt`;
  return [
    ['Timeout', `${span(timeout.totalMs)} in all, ${attempt}`],
    ['Retry', retry === undefined ? 'none: one attempt' : `${retry.maxAttempts} attempts in all`],
    [
      'Retry waits',
      retry &&
        `up to ${span(retry.backoff.baseMs)}, doubling to ${span(retry.backoff.maxMs)}, jitter ${retry.backoff.jitter}`,
    ],
    ['Retried', retry && retriedText(retry)],
    ['Retry methods', retry && [...retry.methods].join(', ')],
    ['Retry budget', retry && budgetText(retry.budget, span, percent)],
    [
      'Bulkhead',
      bulkhead === undefined
        ? 'none: no limit'
        : `${bulkhead.adaptive === undefined ? '' : 'at most '}${bulkhead.maxConcurrent} at once${bulkhead.adaptive === undefined ? '' : ' (by gradient)'}, ${bulkhead.maxQueued} queued${bulkhead.maxQueued === 0 ? '' : ` for up to ${span(bulkhead.maxWaitMs)}`}, in each process`,
    ],
  ];
}

type Retry = NonNullable<CompiledPolicy['guard']['retry']>;

function retriedText({ statuses, grpc, failures }: Retry): string {
  return [statusesText(statuses), [...grpc].join(', '), [...failures].join(', ')]
    .filter((text) => text !== '')
    .join('; ');
}

function budgetText(budget: Retry['budget'], span: Effective['span'], percent: Effective['percent']): string {
  if (budget === undefined) return 'none';
  return `${percent(budget.ratio)} of first attempts, at least ${budget.minPerSecond}/s of the service, over ${span(budget.windowMs)}`;
}

export function breakerEntries({ policy, compiled: { guard }, span, percent }: Effective): readonly Entry[] {
  const { breaker } = guard;
  const trip = policy.spec.circuitBreaker?.trip;
  if (breaker === undefined || trip === undefined) return [['Breaker', 'none']];
  const { cooldown, probe, recovery, quorum } = breaker;
  const steps = recovery.steps.map(percent).join(' -> ');
  return [
    ['Trips at', thresholdText(trip)],
    ['Minimum', minimumText(breaker.trip)],
    ['Scope', scopeText(breaker.scope)],
    ['Per', breaker.per.join(', ')],
    [
      'Quorum',
      breaker.scope === 'Instance'
        ? undefined
        : `${instancesText(quorum.instances)} and ${percent(quorum.share)} of those that called`,
    ],
    ['Failures', failuresText(guard.failures)],
    [
      'Cooldown',
      `${span(cooldown.initialMs)}${cooldown.factor === 1 ? '' : `, x${cooldown.factor} after a failed probe, at most ${span(cooldown.maxMs)}`}`,
    ],
    [
      'Probe',
      `${probe.concurrent} at once, ${probe.successesToClose} good in a row, ${span(probe.timeoutMs)} each${probe.maxCalls === undefined ? '' : `, at most ${probe.maxCalls}`}`,
    ],
    ['Recovery', steps === '' ? 'at once' : `${steps} -> 100%, ${span(recovery.stepForMs)} a step`],
  ];
}

/** No more agents can be asked for than there are with calls: a sole caller is its own quorum. */
function instancesText(instances: number): string {
  if (instances === 1) return '1 agent';
  return `${instances} agents (fewer only where fewer have called in the last 10 s)`;
}

export function scopeText(scope: string): string {
  return scope === 'Instance' ? 'Instance (each agent decides alone)' : scope;
}

function minimumText(trip: NonNullable<CompiledPolicy['guard']['breaker']>['trip']): string | undefined {
  const minimums = new Set(
    [trip.failureRate, trip.slowRate].flatMap((rule) => (rule ? [rule.minimumCalls] : [])),
  );
  return minimums.size === 0 ? undefined : `${[...minimums].join(' / ')} calls in the window`;
}

function failuresText({ statuses, grpc, timeouts }: CompiledPolicy['guard']['failures']): string {
  const parts = [statusesText(statuses), [...grpc].join(', '), timeouts ? 'full timeouts' : ''];
  return parts.filter((part) => part !== '').join('; ') || NO_DATA;
}

/** 500, 501, …, 599 is written "5xx". */
function statusesText(statuses: ReadonlySet<number>): string {
  const left = new Set(statuses);
  const classes: string[] = [];
  for (const hundred of [4, 5]) {
    const all = Array.from({ length: 100 }, (_, index) => hundred * 100 + index);
    if (!all.every((status) => left.has(status))) continue;
    classes.push(`${hundred}xx`);
    for (const status of all) left.delete(status);
  }
  return [...[...left].sort((a, b) => a - b).map(String), ...classes].join(', ');
}

export function fallbackEntries({ compiled: { guard }, span, percent }: Effective): readonly Entry[] {
  return guard.fallbacks.map((one, index): Entry => {
    const label = `Fallback ${index + 1}`;
    switch (one.kind) {
      case 'last-good': {
        const vary = one.varyBy.length === 0 ? '' : `, by ${one.varyBy.join(', ')}`;
        return [
          label,
          `last good answer, at most ${span(one.maxAgeMs)} old, refreshes spread over ${percent(one.refreshJitter)}${vary}`,
        ];
      }
      case 'simplified':
        return [
          label,
          `simplified: ${one.operation}${Number.isFinite(one.whenQueued) ? `, also when ${one.whenQueued} wait` : ''}`,
        ];
      case 'static':
        return [label, `static ${one.status} ${one.contentType}, ${Buffer.byteLength(one.body)} bytes`];
    }
  });
}
