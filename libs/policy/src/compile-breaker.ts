import type {
  BreakerSettings,
  FailureSettings,
  RateRule,
  TimeoutSettings,
  TripSettings,
} from '@bulwark/resilience';
import { canonicalJson, hashText } from './canonical-hash.js';
import { msOf, ratioOf } from './compile-values.js';
import { DEFAULTS } from './defaults.js';
import type { PolicySpec } from './schema/policy.js';

type Breaker = NonNullable<PolicySpec['circuitBreaker']>;
type Rate = NonNullable<Breaker['trip']['failureRate']>;

export function compileBreaker(
  breaker: Breaker,
  guard: { readonly timeout: TimeoutSettings; readonly failures: FailureSettings },
): BreakerSettings {
  const defaults = DEFAULTS.circuitBreaker;
  const decides = {
    scope: breaker.scope ?? defaults.scope,
    per: [...(breaker.per ?? defaults.per)],
    trip: compileTrip(breaker.trip),
    quorum: {
      instances: breaker.quorum?.instances ?? defaults.quorum.instances,
      share: ratioOf(breaker.quorum?.share ?? defaults.quorum.share),
    },
  };
  return {
    ...decides,
    cooldown: {
      initialMs: msOf(breaker.cooldown?.initial ?? defaults.cooldown.initial),
      maxMs: msOf(breaker.cooldown?.max ?? defaults.cooldown.max),
      factor: breaker.cooldown?.factor ?? defaults.cooldown.factor,
    },
    probe: compileProbe(breaker.probe, guard.timeout),
    recovery: {
      steps: (breaker.recovery?.steps ?? defaults.recovery.steps).map(ratioOf),
      stepForMs: msOf(breaker.recovery?.stepFor ?? defaults.recovery.stepFor),
    },
    ruleHash: hashText(canonicalJson({ ...decides, failures: guard.failures })),
  };
}

function compileTrip(trip: Breaker['trip']): TripSettings {
  return {
    ...(trip.failureRate === undefined ? {} : { failureRate: compileRate(trip.failureRate) }),
    ...(trip.slowRate === undefined
      ? {}
      : { slowRate: { ...compileRate(trip.slowRate), slowerThanMs: msOf(trip.slowRate.slowerThan) } }),
    ...(trip.consecutiveFailures === undefined ? {} : { consecutiveFailures: trip.consecutiveFailures }),
  };
}

function compileRate(rate: Rate): RateRule {
  const typed = rate.window ?? DEFAULTS.circuitBreaker.window;
  const window = typeof typed === 'string' ? { ms: msOf(typed) } : { calls: typed.calls };
  const holds = 'calls' in window ? window.calls : Infinity;
  return {
    ratio: ratioOf(rate.ratio),
    minimumCalls: rate.minimumCalls ?? Math.min(DEFAULTS.circuitBreaker.minimumCalls, holds),
    window,
  };
}

function compileProbe(probe: Breaker['probe'], timeout: TimeoutSettings): BreakerSettings['probe'] {
  const defaults = DEFAULTS.circuitBreaker.probe;
  const timeoutMs =
    probe?.timeout === undefined
      ? Math.min(timeout.attemptMs ?? timeout.totalMs, msOf(defaults.timeout))
      : msOf(probe.timeout);
  return {
    concurrent: probe?.concurrent ?? defaults.concurrent,
    successesToClose: probe?.successesToClose ?? defaults.successesToClose,
    timeoutMs,
    ...(probe?.maxCalls === undefined ? {} : { maxCalls: probe.maxCalls }),
  };
}
