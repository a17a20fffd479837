import { DEFAULTS } from './defaults.js';
import { parseDuration } from './duration.js';
import type { Path } from './problem.js';
import { pathText } from './problem.js';
import type { ResiliencePolicy } from './schema/policy.js';

/** Advice about a valid policy: it is accepted, and may not do what its author expects. */
export interface Warning {
  readonly path: string;
  readonly message: string;
}

const UNSAFE_METHODS: ReadonlySet<string> = new Set(['POST', 'PATCH']);

/** In the order of the document; empty = nothing to say. */
export function warnings(policy: ResiliencePolicy): readonly Warning[] {
  return [
    ...callWarnings(policy),
    ...breakerWarnings(policy),
    ...bulkheadWarnings(policy),
    ...fallbackWarnings(policy),
    ...rolloutWarning(policy),
  ];
}

function warning(path: Path, message: string): Warning {
  return { path: pathText(['spec', ...path]), message };
}

function callWarnings({ spec }: ResiliencePolicy): Warning[] {
  const found: Warning[] = [];
  const { retry } = spec;
  if (spec.timeout?.total === undefined) {
    found.push(warning(['timeout', 'total'], `absent: a call may take ${DEFAULTS.timeout.total} in all`));
  }
  if (retry !== undefined && retry.maxAttempts !== 1 && retry.budget === undefined) {
    const { ratio, minPerSecond, window } = DEFAULTS.retry.budget;
    const message = `absent: retries are bounded to ${ratio} of first attempts, at least ${minPerSecond} per second of the service, over ${window}`;
    found.push(warning(['retry', 'budget'], message));
  }
  const unsafe = (retry?.methods ?? []).filter((method) => UNSAFE_METHODS.has(method));
  if (unsafe.length > 0) {
    found.push(warning(['retry', 'methods'], `${unsafe.join(', ')} may be carried out more than once`));
  }
  return found;
}

function breakerWarnings({ spec }: ResiliencePolicy): Warning[] {
  const breaker = spec.circuitBreaker;
  if (breaker === undefined) return [];
  const found: Warning[] = [];
  const path = ['circuitBreaker'];
  const instance = breaker.scope === 'Instance';
  if (breaker.quorum !== undefined && instance) {
    found.push(warning([...path, 'quorum'], 'has no effect in scope Instance: each process decides alone'));
  }
  if (breaker.quorum?.instances === 1 && !instance) {
    found.push(warning([...path, 'quorum', 'instances'], 'one agent alone can open the breaker for all'));
  }
  const total = parseDuration(spec.timeout?.total ?? DEFAULTS.timeout.total) ?? 0;
  if ((parseDuration(breaker.probe?.timeout) ?? 0) > total) {
    found.push(
      warning([...path, 'probe', 'timeout'], 'has no effect above timeout.total, which ends the call before'),
    );
  }
  return found;
}

function bulkheadWarnings({ spec }: ResiliencePolicy): Warning[] {
  const { bulkhead } = spec;
  const found: Warning[] = [];
  if (bulkhead?.adaptive === 'gradient' && bulkhead.maxConcurrent === 1) {
    found.push(
      warning(['bulkhead', 'adaptive'], 'has no effect with maxConcurrent 1: the limit is never less'),
    );
  }
  return [...found, ...waitWarnings(spec)];
}

function waitWarnings(spec: ResiliencePolicy['spec']): Warning[] {
  const { bulkhead } = spec;
  if (bulkhead?.maxWait === undefined) return [];
  const path = ['bulkhead', 'maxWait'];
  if ((bulkhead.maxQueued ?? 0) === 0)
    return [warning(path, 'has no effect without maxQueued: nothing waits')];
  const total = parseDuration(spec.timeout?.total ?? DEFAULTS.timeout.total) ?? 0;
  if ((parseDuration(bulkhead.maxWait) ?? 0) < total) return [];
  return [warning(path, 'has no effect at or above timeout.total, which ends the call before')];
}

const WRITE = /^(?:POST|PUT|PATCH|DELETE) /;

/** A fixed answer that reads as success must not stand for a write. gRPC names do not tell what a method does. */
function fallbackWarnings({ spec }: ResiliencePolicy): Warning[] {
  const { operations } = spec.target;
  if (operations !== undefined && !operations.some((one) => WRITE.test(one))) return [];
  return (spec.fallback ?? []).flatMap((entry, index) => {
    const status = entry.static?.status ?? DEFAULTS.fallback.staticStatus;
    if (entry.static === undefined || status >= 400) return [];
    const message = `a write would be answered ${status} though nothing was done: name the operations it may stand for in target.operations`;
    return [warning(['fallback', index, 'static'], message)];
  });
}

function rolloutWarning({ spec }: ResiliencePolicy): Warning[] {
  if (spec.rollout === undefined || spec.rollout.strategy === 'immediate') return [];
  return [warning(['rollout'], 'rollouts are not available yet: the change is sent to all at once')];
}
