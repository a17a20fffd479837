import { describe, expect, it } from 'vitest';
import { compilePolicy, type CompiledPolicy } from './compile.js';
import { EXAMPLE_POLICY } from './example.js';
import { formatProblems } from './problem.js';
import { readPolicies } from './read-policies.js';
import type { ResiliencePolicy } from './schema/policy.js';
import { validatePolicy } from './validate.js';

const identity = { uid: 'u-1', generation: 7, createdAtMs: 1_700_000_000_000 };
const all5xx = new Set(Array.from({ length: 100 }, (_, i) => 500 + i));

function compiled(spec: Record<string, unknown>): CompiledPolicy {
  const result = validatePolicy({
    apiVersion: 'bulwark.dev/v1',
    kind: 'ResiliencePolicy',
    metadata: { name: 'p' },
    spec: { target: { service: 'x' }, ...spec },
  });
  if (!result.ok) throw new Error(formatProblems(result.problems));
  return compilePolicy(result.policy, identity);
}

async function example(): Promise<ResiliencePolicy> {
  const [first] = await readPolicies([{ name: 'example', text: EXAMPLE_POLICY }], { namespace: 'default' });
  return first!.policy;
}

describe('the full example', () => {
  it('compiles to these settings', async () => {
    expect(compilePolicy(await example(), identity)).toEqual({
      namespace: 'shop',
      name: 'shop-recommendations',
      uid: 'u-1',
      generation: 7,
      createdAtMs: 1_700_000_000_000,
      owner: 'team-reco',
      runbook: 'https://runbooks.example/reco',
      target: { service: 'recommendations', operations: ['GET /v1/recs'] },
      callers: { app: 'storefront' },
      contract: 'optional',
      guard: {
        policy: 'shop/shop-recommendations',
        generation: 7,
        mode: 'enforce',
        contract: 'optional',
        timeout: { attemptMs: 800, totalMs: 2_000 },
        retry: {
          maxAttempts: 3,
          backoff: { baseMs: 100, maxMs: 2_000, jitter: 'full' },
          statuses: new Set([429, 502, 503, 504]),
          grpc: new Set(['UNAVAILABLE']),
          failures: new Set(['connect', 'reset', 'timeout']),
          methods: new Set(['GET', 'HEAD']),
          budget: { ratio: 0.1, minPerSecond: 10, windowMs: 60_000 },
        },
        breaker: {
          scope: 'Fleet',
          per: ['target'],
          trip: {
            failureRate: { ratio: 0.5, minimumCalls: 20, window: { ms: 10_000 } },
            slowRate: { ratio: 0.8, minimumCalls: 20, window: { ms: 10_000 }, slowerThanMs: 500 },
            consecutiveFailures: 10,
          },
          quorum: { instances: 2, share: 0.2 },
          cooldown: { initialMs: 5_000, maxMs: 60_000, factor: 2 },
          probe: { concurrent: 1, successesToClose: 1, timeoutMs: 1_000 },
          recovery: { steps: [0.1, 0.25, 0.5], stepForMs: 5_000 },
          ruleHash: '3a7844abbbdece1c',
        },
        bulkhead: { maxConcurrent: 10, maxQueued: 20, maxWaitMs: 300 },
        fallbacks: [
          { kind: 'last-good', maxAgeMs: 120_000, refreshJitter: 0.1, varyBy: ['header:accept-language'] },
          { kind: 'simplified', whenQueued: 10, operation: 'GET /v1/recs/popular' },
          { kind: 'static', status: 200, body: '{"items": []}', contentType: 'application/json' },
        ],
        failures: {
          statuses: all5xx,
          grpc: new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'INTERNAL']),
          timeouts: true,
        },
      },
    });
  });

  it('is frozen all the way down', async () => {
    const { guard, target, callers } = compilePolicy(await example(), identity);
    for (const part of [
      guard,
      target,
      callers,
      guard.timeout,
      guard.breaker?.trip.failureRate?.window,
      guard.fallbacks,
    ]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });
});

describe('the smallest policy', () => {
  it('guards with a deadline alone', () => {
    expect(compiled({})).toEqual({
      namespace: 'default',
      name: 'p',
      uid: 'u-1',
      generation: 7,
      createdAtMs: 1_700_000_000_000,
      target: { service: 'x' },
      callers: {},
      contract: 'optional',
      guard: {
        policy: 'default/p',
        generation: 7,
        mode: 'enforce',
        contract: 'optional',
        timeout: { totalMs: 10_000 },
        fallbacks: [],
        failures: {
          statuses: all5xx,
          grpc: new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'INTERNAL']),
          timeouts: true,
        },
      },
    });
  });
});

describe('defaults', () => {
  it('C059: of a retry, with a budget even when none is typed', () => {
    expect(compiled({ retry: {} }).guard.retry).toEqual({
      maxAttempts: 3,
      backoff: { baseMs: 100, maxMs: 2_000, jitter: 'full' },
      statuses: new Set([429, 502, 503, 504]),
      grpc: new Set(['UNAVAILABLE']),
      failures: new Set(['connect', 'reset', 'timeout']),
      methods: new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']),
      budget: { ratio: 0.1, minPerSecond: 10, windowMs: 60_000 },
    });
    expect(compiled({ retry: { budget: { ratio: '20%' } } }).guard.retry).toMatchObject({
      maxAttempts: 3,
      budget: { ratio: 0.2, minPerSecond: 10, windowMs: 60_000 },
    });
  });

  it('of one list leave the others alone; an empty list is none', () => {
    const { retry } = compiled({ retry: { retryOn: { statuses: [503], failures: [] } } }).guard;
    expect([retry?.statuses, retry?.grpc, retry?.failures]).toEqual([
      new Set([503]),
      new Set(['UNAVAILABLE']),
      new Set(),
    ]);
  });

  it('of a breaker', () => {
    expect(
      compiled({ circuitBreaker: { trip: { failureRate: { ratio: '50%' } } } }).guard.breaker,
    ).toMatchObject({
      scope: 'Fleet',
      per: ['target'],
      trip: { failureRate: { ratio: 0.5, minimumCalls: 20, window: { ms: 10_000 } } },
      quorum: { instances: 2, share: 0.2 },
      cooldown: { initialMs: 5_000, maxMs: 60_000, factor: 2 },
      probe: { concurrent: 1, successesToClose: 1, timeoutMs: 1_000 },
      recovery: { steps: [0.1, 0.25, 0.5], stepForMs: 5_000 },
    });
  });

  it('of minimumCalls never pass what a window by calls holds', () => {
    const rule = { ratio: '50%', window: { calls: 5 } };
    const { breaker } = compiled({
      circuitBreaker: { scope: 'Instance', trip: { failureRate: rule } },
    }).guard;
    expect(breaker?.trip.failureRate).toEqual({ ratio: 0.5, minimumCalls: 5, window: { calls: 5 } });
  });

  it.each([
    [{ attempt: '300ms', total: '2s' }, 300],
    [{ total: '500ms' }, 500],
    [{ attempt: '5s', total: '9s' }, 1_000],
  ])('of a probe under %j time out after %d ms', (timeout, timeoutMs) => {
    const circuitBreaker = { trip: { consecutiveFailures: 10 } };
    expect(compiled({ timeout, circuitBreaker }).guard.breaker?.probe.timeoutMs).toBe(timeoutMs);
  });

  it('C137: of a bulkhead queue nothing; with a queue, a call waits until its deadline', () => {
    expect(compiled({ bulkhead: { maxConcurrent: 5 } }).guard.bulkhead).toEqual({
      maxConcurrent: 5,
      maxQueued: 0,
      maxWaitMs: 0,
    });
    expect(
      compiled({ bulkhead: { maxConcurrent: 5, maxQueued: 2 }, timeout: { total: '2s' } }).guard.bulkhead,
    ).toEqual({
      maxConcurrent: 5,
      maxQueued: 2,
      maxWaitMs: 2_000,
    });
  });

  it('of a limit that follows the load: gradient; none and absent are the same', () => {
    const adaptive = (value?: string) =>
      compiled({ bulkhead: { maxConcurrent: 5, ...(value !== undefined && { adaptive: value }) } }).guard
        .bulkhead;
    expect(adaptive('gradient')).toMatchObject({ maxConcurrent: 5, adaptive: 'gradient' });
    expect(adaptive('none')).toEqual(adaptive());
    expect(adaptive()).not.toHaveProperty('adaptive');
  });

  it('of fallbacks', () => {
    const { fallbacks } = compiled({
      fallback: [
        { lastGood: { maxAge: '1m', varyBy: ['header:Accept-Language'] } },
        { simplified: { operation: 'GET /b' } },
        { static: { body: 'sorry' } },
      ],
    }).guard;
    expect(fallbacks).toEqual([
      { kind: 'last-good', maxAgeMs: 60_000, refreshJitter: 0.1, varyBy: ['header:accept-language'] },
      { kind: 'simplified', whenQueued: Infinity, operation: 'GET /b' },
      { kind: 'static', status: 200, body: 'sorry', contentType: 'text/plain; charset=utf-8' },
    ]);
  });

  it('of failures, list by list; classes are spelt out', () => {
    const failures = { statuses: [429, '5xx'], grpc: [], timeouts: false };
    const { guard } = compiled({ circuitBreaker: { trip: { consecutiveFailures: 10 }, failures } });
    expect(guard.failures).toEqual({ statuses: new Set([429, ...all5xx]), grpc: new Set(), timeouts: false });
  });
});

describe('the hash of the rule', () => {
  const breaker = (more: Record<string, unknown>, spec: Record<string, unknown> = {}) =>
    compiled({ circuitBreaker: { trip: { consecutiveFailures: 10 }, ...more }, ...spec }).guard.breaker
      ?.ruleHash;
  const plain = breaker({});

  it('stays when what does not decide about trips changes', () => {
    for (const more of [
      { cooldown: { initial: '1s' } },
      { probe: { concurrent: 3 } },
      { recovery: { steps: [] } },
      { scope: 'Fleet' },
      { per: ['target'] },
      { quorum: { share: '20.0%' } },
      { failures: { grpc: ['INTERNAL', 'UNAVAILABLE', 'DEADLINE_EXCEEDED'] } },
    ]) {
      expect(breaker(more), JSON.stringify(more)).toBe(plain);
    }
    expect(breaker({}, { timeout: { total: '3s' }, mode: 'Shadow' })).toBe(plain);
  });

  it('changes with trip, scope, per, quorum and failures', () => {
    const hashes = [
      { trip: { consecutiveFailures: 11 } },
      { trip: { consecutiveFailures: 10, failureRate: { ratio: '50%' } } },
      { scope: 'Zone' },
      { per: ['operation'] },
      { quorum: { instances: 3 } },
      { failures: { timeouts: false } },
      { failures: { statuses: [500] } },
    ].map((more) => breaker(more));
    expect(new Set([...hashes, plain]).size).toBe(8);
  });
});
