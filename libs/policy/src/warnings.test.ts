import { describe, expect, it } from 'vitest';
import type { PolicySpec } from './schema/policy.js';
import { warnings } from './warnings.js';

function warned(spec: Omit<PolicySpec, 'target'>): string[] {
  return warnings({
    apiVersion: 'bulwark.dev/v1',
    kind: 'ResiliencePolicy',
    metadata: { name: 'p' },
    spec: { target: { service: 'x' }, timeout: { total: '2s' }, ...spec },
  }).map((one) => one.path);
}
const trip = { consecutiveFailures: 10 };

describe('warnings', () => {
  it('has nothing to say about a plain policy', () => {
    expect(warned({ retry: { budget: {} }, circuitBreaker: { trip } })).toEqual([]);
  });

  it('C037: says what a call without a total timeout may take', () => {
    expect(warned({ timeout: {} })).toEqual(['spec.timeout.total']);
  });

  it('says which budget bounds retries when none is typed', () => {
    expect(warned({ retry: { maxAttempts: 3 } })).toEqual(['spec.retry.budget']);
    expect(warned({ retry: { maxAttempts: 1 } })).toEqual([]);
  });

  it('says that unsafe methods may be carried out twice', () => {
    expect(warned({ retry: { budget: {}, methods: ['GET', 'POST'] } })).toEqual(['spec.retry.methods']);
  });

  it('says when one agent alone can open the breaker for all', () => {
    expect(warned({ circuitBreaker: { trip, quorum: { instances: 1 } } })).toEqual([
      'spec.circuitBreaker.quorum.instances',
    ]);
  });

  it('says what has no effect', () => {
    expect(warned({ circuitBreaker: { trip, scope: 'Instance', quorum: { instances: 1 } } })).toEqual([
      'spec.circuitBreaker.quorum',
    ]);
    expect(warned({ circuitBreaker: { trip, probe: { timeout: '3s' } } })).toEqual([
      'spec.circuitBreaker.probe.timeout',
    ]);
    expect(warned({ bulkhead: { maxConcurrent: 1, maxWait: '1s' } })).toEqual(['spec.bulkhead.maxWait']);
    expect(warned({ bulkhead: { maxConcurrent: 1, adaptive: 'gradient' } })).toEqual([
      'spec.bulkhead.adaptive',
    ]);
    expect(warned({ bulkhead: { maxConcurrent: 2, adaptive: 'gradient' } })).toEqual([]);
    expect(warned({ bulkhead: { maxConcurrent: 1, maxQueued: 1, maxWait: '2s' } })).toEqual([
      'spec.bulkhead.maxWait',
    ]);
  });

  it('says when a fixed answer would stand for a write', () => {
    const fallback = [{ lastGood: { maxAge: '1m' } }, { static: { body: '{}' } }];
    const ofOperations = (...operations: string[]) =>
      warnings({
        apiVersion: 'bulwark.dev/v1',
        kind: 'ResiliencePolicy',
        metadata: { name: 'p' },
        spec: { target: { service: 'x', operations }, timeout: { total: '2s' }, fallback },
      });
    expect(warned({ fallback })).toEqual(['spec.fallback[1].static']);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      expect(ofOperations('GET /a', `${method} /a`)).toEqual([
        {
          path: 'spec.fallback[1].static',
          message:
            'a write would be answered 200 though nothing was done: name the operations it may stand for in target.operations',
        },
      ]);
    }
    expect(ofOperations('GET /a', 'shop.Recs/List')).toEqual([]);
    expect(warned({ fallback: [{ static: { status: 503, body: '' } }] })).toEqual([]);
    expect(warned({ fallback: [{ lastGood: { maxAge: '1m' } }] })).toEqual([]);
  });

  it('says that a rollout is not carried out yet', () => {
    expect(warned({ rollout: { strategy: 'standard' } })).toEqual(['spec.rollout']);
    expect(warned({ rollout: { strategy: 'immediate' } })).toEqual([]);
  });
});
