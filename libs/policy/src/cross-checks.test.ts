import { describe, expect, it } from 'vitest';
import { validatePolicy } from './validate.js';

const trip = { consecutiveFailures: 10 };
const rate = { ratio: '50%' };

function found(spec: Record<string, unknown>): (readonly [string, string])[] {
  const result = validatePolicy({
    apiVersion: 'bulwark.dev/v1',
    kind: 'ResiliencePolicy',
    metadata: { name: 'p' },
    spec: { target: { service: 'x' }, ...spec },
  });
  return result.ok ? [] : result.problems.map((one) => [one.path, one.message] as const);
}
const breaker = (circuitBreaker: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  found({ circuitBreaker: { trip, ...circuitBreaker }, ...more });

describe('what can never work is refused with the reason', () => {
  it('C051: an attempt timeout at or above the total, typed or default', () => {
    const reason = (total: string) =>
      `"2s" is not less than timeout.total (${total}), so it could never end an attempt`;
    expect(found({ timeout: { attempt: '2s', total: '1s' } })).toEqual([
      ['spec.timeout.attempt', reason('1s')],
    ]);
    expect(found({ timeout: { attempt: '2s', total: '2s' } })).toEqual([
      ['spec.timeout.attempt', reason('2s')],
    ]);
    expect(found({ timeout: { attempt: '10s' } })[0]?.[1]).toContain('(10s, the default)');
    expect(found({ timeout: { attempt: '9s' } })).toEqual([]);
    expect(found({ timeout: { attempt: '1999ms', total: '2s' } })).toEqual([]);
  });

  it('S2.13, C009: fewer probe calls than successes to close', () => {
    expect(breaker({ probe: { maxCalls: 2, successesToClose: 3 } })).toEqual([
      [
        'spec.circuitBreaker.probe.maxCalls',
        'half-open lets 2 calls through in all and needs 3 successes, so the breaker could never close',
      ],
    ]);
    expect(breaker({ probe: { maxCalls: 3, successesToClose: 3 } })).toEqual([]);
    expect(breaker({ probe: { maxCalls: 1 } })).toEqual([]);
  });

  it('S1.9: a fallback of any kind on a required contract', () => {
    for (const entry of [
      { lastGood: { maxAge: '1s' } },
      { simplified: { operation: 'GET /a' } },
      { static: { body: '' } },
    ]) {
      const [[path, message] = []] = found({ contract: 'required', fallback: [entry] });
      expect(path).toBe('spec.fallback');
      expect(message).toContain('contract is required');
      expect(found({ contract: 'optional', fallback: [entry] })).toEqual([]);
    }
    expect(found({ contract: 'required' })).toEqual([]);
    expect(found({ contract: 'required', fallback: [] })).toEqual([]);
  });

  it('a minimum of calls above what the window holds', () => {
    const rule = (minimumCalls: number) =>
      breaker({ scope: 'Instance', trip: { failureRate: { ...rate, minimumCalls, window: { calls: 20 } } } });
    expect(rule(21)).toEqual([
      [
        'spec.circuitBreaker.trip.failureRate.minimumCalls',
        '21 calls never fit in a window of 20, so the rule could never trip',
      ],
    ]);
    expect(rule(20)).toEqual([]);
  });

  it.each(['Fleet', 'Region', 'Zone', undefined])('a window by calls in scope %s', (scope) => {
    const circuitBreaker = {
      ...(scope && { scope }),
      trip: { slowRate: { ...rate, slowerThan: '1s', window: { calls: 9 } } },
    };
    expect(breaker(circuitBreaker).map(([path]) => path)).toEqual([
      'spec.circuitBreaker.trip.slowRate.window',
    ]);
  });

  it('fewer than 10 consecutive failures over more than one process', () => {
    expect(breaker({ trip: { consecutiveFailures: 9 } })[0]?.[0]).toBe(
      'spec.circuitBreaker.trip.consecutiveFailures',
    );
    expect(breaker({ trip: { consecutiveFailures: 2 }, scope: 'Zone' })).toHaveLength(1);
    expect(breaker({ trip: { consecutiveFailures: 2 }, scope: 'Instance' })).toEqual([]);
  });

  it('a first cooldown or back-off above its maximum, typed or default', () => {
    expect(breaker({ cooldown: { initial: '10s', max: '5s' } })[0]?.[0]).toBe(
      'spec.circuitBreaker.cooldown.initial',
    );
    expect(breaker({ cooldown: { initial: '2m' } })[0]?.[1]).toBe(
      'initial (2m) is above max (60s, the default)',
    );
    expect(breaker({ cooldown: { max: '4s' } })[0]?.[0]).toBe('spec.circuitBreaker.cooldown.max');
    expect(found({ retry: { backoff: { base: '3s' } } })[0]?.[0]).toBe('spec.retry.backoff.base');
    expect(found({ retry: { backoff: { max: '50ms' } } })[0]?.[0]).toBe('spec.retry.backoff.max');
    expect(found({ retry: { backoff: { base: '2s', max: '2s' } } })).toEqual([]);
  });

  it('recovery steps that do not rise', () => {
    expect(breaker({ recovery: { steps: ['10%', '10%', '50%', '25%'] } }).map(([path]) => path)).toEqual([
      'spec.circuitBreaker.recovery.steps[1]',
      'spec.circuitBreaker.recovery.steps[3]',
    ]);
    expect(breaker({ recovery: { steps: [] } })).toEqual([]);
  });

  it('a breaker without a rule', () => {
    expect(breaker({ trip: {} })).toEqual([['spec.circuitBreaker.trip', 'has no entry']]);
    expect(found({ circuitBreaker: {} })).toEqual([['spec.circuitBreaker.trip', 'is required']]);
  });

  it('a slowness that the timeout never lets happen', () => {
    const slow = (slowerThan: string, timeout?: unknown) =>
      breaker({ trip: { slowRate: { ...rate, slowerThan } } }, timeout === undefined ? {} : { timeout });
    expect(slow('800ms', { attempt: '800ms' })[0]?.[1]).toContain('timeout.attempt (800ms) ends it before');
    expect(slow('799ms', { attempt: '800ms' })).toEqual([]);
    expect(slow('2s', { total: '2s' })[0]?.[1]).toContain('timeout.total (2s)');
    expect(slow('10s')[0]?.[1]).toContain('timeout.total (10s, the default)');
  });

  it('a simplified answer that is the guarded operation itself', () => {
    const spec = {
      target: { service: 'x', operations: ['GET /a', 'GET /b'] },
      fallback: [{ simplified: { operation: 'GET /b' } }],
    };
    expect(found(spec)[0]?.[0]).toBe('spec.fallback[0].simplified.operation');
  });

  it('a simplified answer at a queue length that is never reached', () => {
    const spec = (bulkhead?: unknown) => ({
      ...(bulkhead === undefined ? {} : { bulkhead }),
      fallback: [{ simplified: { operation: 'GET /b', whenQueued: 10 } }],
    });
    expect(found(spec())[0]?.[1]).toContain('nothing ever queues without a bulkhead');
    expect(found(spec({ maxConcurrent: 5 }))[0]?.[1]).toContain('holds 0 (maxQueued)');
    expect(found(spec({ maxConcurrent: 5, maxQueued: 9 }))[0]?.[1]).toContain('holds 9 (maxQueued)');
    expect(found(spec({ maxConcurrent: 5, maxQueued: 10 }))).toEqual([]);
  });

  it('last-good for a method that changes things', () => {
    const spec = (operations: string[]) => ({
      target: { service: 'x', operations },
      fallback: [{ lastGood: { maxAge: '1m' } }],
    });
    expect(found(spec(['GET /a', 'POST /a', 'DELETE /a']))).toHaveLength(2);
    expect(found(spec(['GET /a', 'HEAD /a', 'pkg.Service/Method']))).toEqual([]);
  });

  it('a fallback that stands twice, or after one that always answers', () => {
    const last = { lastGood: { maxAge: '1m' } };
    const fixed = { static: { body: '' } };
    expect(found({ fallback: [fixed, last] })[0]?.[0]).toBe('spec.fallback[1].lastGood');
    expect(found({ fallback: [last, last] })[0]?.[1]).toBe('there is a lastGood before');
    expect(
      found({
        bulkhead: { maxConcurrent: 1, maxQueued: 5 },
        fallback: [fixed, { simplified: { operation: 'GET /b', whenQueued: 2 } }],
      }),
    ).toEqual([]);
  });

  it('the same header twice, whatever its letter case', () => {
    const varyBy = ['header:Accept', 'header:accept'];
    expect(found({ fallback: [{ lastGood: { maxAge: '1m', varyBy } }] })).toEqual([
      [
        'spec.fallback[0].lastGood.varyBy[1]',
        '"header:accept" stands in the list already: header names ignore case',
      ],
    ]);
  });
});
