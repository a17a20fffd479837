import type { BreakerSettings } from '@bulwark/resilience';

export const POLICY = { namespace: 'sim', policy: 'dependency' };
export const KEY = { ...POLICY, key: 'target' };

export const CONSECUTIVE: BreakerSettings['trip'] = { consecutiveFailures: 10 };
export const HALF: BreakerSettings['trip'] = {
  failureRate: { ratio: 0.5, minimumCalls: 20, window: { ms: 10_000 } },
};

/** The defaults of a policy with this rule. */
export function breaker(
  trip: BreakerSettings['trip'],
  overrides: Partial<BreakerSettings> = {},
): BreakerSettings {
  return {
    scope: 'Fleet',
    per: ['target'],
    trip,
    quorum: { instances: 2, share: 0.2 },
    cooldown: { initialMs: 5_000, maxMs: 60_000, factor: 2 },
    probe: { concurrent: 1, successesToClose: 1, timeoutMs: 1_000 },
    recovery: { steps: [0.1, 0.25, 0.5], stepForMs: 5_000 },
    ruleHash: JSON.stringify(trip),
    ...overrides,
  };
}
