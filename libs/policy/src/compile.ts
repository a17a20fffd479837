/** From a validated policy, with its defaults filled in, to what the engine runs. */
import type {
  BulkheadSettings,
  FailureSettings,
  GuardSettings,
  RetrySettings,
  TimeoutSettings,
} from '@bulwark/resilience';
import { compileBreaker } from './compile-breaker.js';
import { compileFallbacks } from './compile-fallback.js';
import { expandStatuses, msOf, ratioOf } from './compile-values.js';
import { DEFAULTS } from './defaults.js';
import type { PolicySpec, ResiliencePolicy } from './schema/policy.js';

/** A policy ready to match and to run. Frozen, whole, and safe to share. */
export interface CompiledPolicy {
  readonly namespace: string;
  readonly name: string;
  /** "" when it never came from a server (a bootstrap file). */
  readonly uid: string;
  readonly generation: number;
  /** Unix milliseconds; the older policy wins a tie. */
  readonly createdAtMs: number;
  /** From the annotations bulwark.dev/owner and bulwark.dev/runbook. */
  readonly owner?: string;
  readonly runbook?: string;
  readonly target: {
    readonly service: string;
    /** Absent = all. */
    readonly operations?: readonly string[];
  };
  /** Labels the caller must all have; empty = every caller of the namespace. */
  readonly callers: Readonly<Record<string, string>>;
  readonly contract: 'optional' | 'required';
  readonly guard: GuardSettings;
}

/** What the server knows about a stored policy. */
export interface StoredIdentity {
  readonly uid: string;
  readonly generation: number;
  /** Unix milliseconds. */
  readonly createdAtMs: number;
}

/** Takes only what `validatePolicy` gave; anything else may throw. */
export function compilePolicy(policy: ResiliencePolicy, identity: StoredIdentity): CompiledPolicy {
  const { metadata, spec } = policy;
  const namespace = metadata.namespace ?? DEFAULTS.namespace;
  const owner = metadata.annotations?.['bulwark.dev/owner'];
  const runbook = metadata.annotations?.['bulwark.dev/runbook'];
  return deepFreeze({
    namespace,
    name: metadata.name,
    uid: identity.uid,
    generation: identity.generation,
    createdAtMs: identity.createdAtMs,
    ...(owner === undefined ? {} : { owner }),
    ...(runbook === undefined ? {} : { runbook }),
    target: {
      service: spec.target.service,
      ...(spec.target.operations === undefined ? {} : { operations: [...spec.target.operations] }),
    },
    callers: { ...spec.callers?.matchLabels },
    contract: spec.contract ?? DEFAULTS.contract,
    guard: compileGuard(spec, { policy: `${namespace}/${metadata.name}`, generation: identity.generation }),
  });
}

function compileGuard(
  spec: PolicySpec,
  name: { readonly policy: string; readonly generation: number },
): GuardSettings {
  const timeout = compileTimeout(spec.timeout);
  const failures = compileFailures(spec.circuitBreaker?.failures);
  return {
    ...name,
    mode: (spec.mode ?? DEFAULTS.mode) === 'Shadow' ? 'shadow' : 'enforce',
    contract: spec.contract ?? DEFAULTS.contract,
    timeout,
    ...(spec.retry === undefined ? {} : { retry: compileRetry(spec.retry) }),
    ...(spec.circuitBreaker === undefined
      ? {}
      : { breaker: compileBreaker(spec.circuitBreaker, { timeout, failures }) }),
    ...(spec.bulkhead === undefined ? {} : { bulkhead: compileBulkhead(spec.bulkhead, timeout) }),
    fallbacks: compileFallbacks(spec.fallback ?? []),
    failures,
  };
}

function compileTimeout(timeout: PolicySpec['timeout']): TimeoutSettings {
  return {
    ...(timeout?.attempt === undefined ? {} : { attemptMs: msOf(timeout.attempt) }),
    totalMs: msOf(timeout?.total ?? DEFAULTS.timeout.total),
  };
}

function compileFailures(failures: NonNullable<PolicySpec['circuitBreaker']>['failures']): FailureSettings {
  return {
    statuses: expandStatuses(failures?.statuses ?? DEFAULTS.failures.statuses),
    grpc: new Set(failures?.grpc ?? DEFAULTS.failures.grpc),
    timeouts: failures?.timeouts ?? DEFAULTS.failures.timeouts,
  };
}

function compileRetry(retry: NonNullable<PolicySpec['retry']>): RetrySettings {
  const defaults = DEFAULTS.retry;
  return {
    maxAttempts: retry.maxAttempts ?? defaults.maxAttempts,
    backoff: {
      baseMs: msOf(retry.backoff?.base ?? defaults.backoff.base),
      maxMs: msOf(retry.backoff?.max ?? defaults.backoff.max),
      jitter: retry.backoff?.jitter ?? defaults.backoff.jitter,
    },
    statuses: expandStatuses(retry.retryOn?.statuses ?? defaults.statuses),
    grpc: new Set(retry.retryOn?.grpc ?? defaults.grpc),
    failures: new Set(retry.retryOn?.failures ?? defaults.failures),
    methods: new Set(retry.methods ?? defaults.methods),
    budget: {
      ratio: ratioOf(retry.budget?.ratio ?? defaults.budget.ratio),
      minPerSecond: retry.budget?.minPerSecond ?? defaults.budget.minPerSecond,
      windowMs: msOf(retry.budget?.window ?? defaults.budget.window),
    },
  };
}

function compileBulkhead(
  bulkhead: NonNullable<PolicySpec['bulkhead']>,
  timeout: TimeoutSettings,
): BulkheadSettings {
  const maxQueued = bulkhead.maxQueued ?? DEFAULTS.bulkhead.maxQueued;
  const longest = maxQueued === 0 ? 0 : timeout.totalMs;
  return {
    maxConcurrent: bulkhead.maxConcurrent,
    maxQueued,
    maxWaitMs: bulkhead.maxWait === undefined ? longest : msOf(bulkhead.maxWait),
    ...(bulkhead.adaptive === 'gradient' ? { adaptive: 'gradient' as const } : {}),
  };
}

/** Freezes plain objects and arrays all the way down. Sets have no frozen form; their type is read-only. */
function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}
