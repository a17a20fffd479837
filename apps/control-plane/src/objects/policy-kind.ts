import { validatePolicy, warnings, type ResiliencePolicy } from '@bulwark/policy';
import type { ApiObject } from './api-object.js';
import type { StoredKind } from './stored-kind.js';

export const POLICIES = 'resiliencepolicies';

export interface PolicyKindOptions {
  /** What an absent `spec.rollout` means here. */
  readonly defaultRollout: string;
  /** Advice that needs to know the other policies. */
  neighbours(policy: ApiObject): readonly string[];
}

export function policyKind(options: PolicyKindOptions): StoredKind {
  return {
    plural: POLICIES,
    kind: 'ResiliencePolicy',
    validate: (value) => {
      const validation = validatePolicy(value);
      if (!validation.ok) return { problems: validation.problems.map(withAllowed), object: undefined };
      return { problems: [], object: validation.policy as ApiObject };
    },
    advice: (object) => [
      ...warnings(object as ResiliencePolicy).map(({ path, message }) => `${path}: ${message}`),
      ...defaultRolloutAdvice(object as ResiliencePolicy, options.defaultRollout),
      ...options.neighbours(object),
    ],
  };
}

function withAllowed<T extends { message: string; allowed: string }>(problem: T): T {
  const { message, allowed } = problem;
  return allowed === '' || message.includes(allowed)
    ? problem
    : { ...problem, message: `${message} (${allowed})` };
}

function defaultRolloutAdvice({ spec }: ResiliencePolicy, defaultRollout: string): string[] {
  if (spec.rollout !== undefined || defaultRollout === 'immediate') return [];
  return [
    `spec.rollout: absent means "${defaultRollout}" on this server; rollouts are not available yet: the change is sent to all at once`,
  ];
}
