import {
  breakerSettings as breaker,
  FAIL,
  FakeDependency,
  FakeHost,
  guardSettings as settings,
  HANG,
  OK,
  type Reply,
  replyAdapter as adapter,
  TransportError,
} from '@bulwark/testing';
import { describe, expect, test } from 'vitest';
import type { CallAdapter, CallRequest, CallResult } from './call.js';
import type { EngineEvent } from './events.js';
import { Guard } from './guard.js';
import type { FallbackSettings, GuardSettings } from './settings.js';

const lastGood: FallbackSettings = { kind: 'last-good', maxAgeMs: 120_000, refreshJitter: 0.1, varyBy: [] };
const fixed: FallbackSettings = {
  kind: 'static',
  status: 200,
  body: '{"items": []}',
  contentType: 'application/json',
};
const simplified: FallbackSettings = { kind: 'simplified', whenQueued: 10, operation: 'GET /popular' };

function world(overrides: Partial<GuardSettings> = {}, extra: Partial<CallAdapter<Reply>> = {}) {
  const host = new FakeHost();
  const events: EngineEvent[] = [];
  const guard = new Guard({
    host,
    settings: settings({ breaker: breaker(), fallbacks: [lastGood, fixed], ...overrides }),
    onEvent: (event) => events.push(event),
  });
  const dependency = new FakeDependency(host.sleep);
  const call = (request: Partial<CallRequest> = {}): Promise<CallResult<Reply>> =>
    guard.call({ operation: 'GET /recs', cacheKey: 'k', ...request }, dependency.run, {
      ...adapter,
      ...extra,
    });
  const state = () => guard.gate('target')?.localState(host.nowMs());
  return { host, guard, dependency, call, state, events };
}

const degraded = (result: CallResult<Reply>) => {
  if (result.kind !== 'degraded') throw new Error(result.kind);
  return result;
};

describe('S1', () => {
  test('S1.1: an answer is fresh, and the cache holds it at age 0', async () => {
    const it = world();
    it.dependency.script = [{ reply: { status: 200, body: 'a' } }, FAIL];
    expect(await it.call()).toMatchObject({ kind: 'fresh', value: { body: 'a' } });
    expect(await it.call()).toMatchObject({ mode: 'last-good', ageMs: 0, value: { body: 'a' } });
  });

  test('S1.2: it fails at a cached age of exactly 120 s: last-good, 120 s stated, the newest success', async () => {
    const it = world();
    it.dependency.script = [
      { reply: { status: 200, body: 'old' } },
      { reply: { status: 200, body: 'new' } },
      FAIL,
    ];
    await it.call();
    await it.host.advance(1000);
    await it.call();
    await it.host.advance(120_000);
    const result = degraded(await it.call());
    expect(result).toMatchObject({
      mode: 'last-good',
      ageMs: 120_000,
      reason: 'failure',
      value: { body: 'new' },
    });
    expect(result.cause).toMatchObject({ kind: 'failed', value: { status: 503 } });
    expect(result.policy).toBe('shop/recs@7');
  });

  test('S1.3: at 121 s: static', async () => {
    const it = world();
    it.dependency.script = [OK, FAIL];
    await it.call();
    await it.host.advance(121_000);
    expect(await it.call()).toMatchObject({
      mode: 'static',
      fixed: { status: 200, body: '{"items": []}' },
      ageMs: 0,
    });
  });

  test('S1.4, S1.12: an empty cache, and an answer of another caller’s scope: static', async () => {
    const it = world();
    it.dependency.script = [FAIL, OK, FAIL];
    expect(await it.call()).toMatchObject({ mode: 'static' });
    await it.call({ cacheKey: 'GET /recs alice' });
    expect(await it.call({ cacheKey: 'GET /recs bob' })).toMatchObject({ mode: 'static' });
  });

  test('S1.5: an answer of unknown or negative age is no cache: static', async () => {
    const it = world();
    for (const ageMs of [NaN, -1]) it.guard.restoreLastGood('k', { status: 200 }, ageMs);
    it.dependency.script = [FAIL];
    expect(await it.call()).toMatchObject({ mode: 'static' });
  });

  test('an answer kept across a restart serves with its true age', async () => {
    const it = world();
    it.guard.restoreLastGood('k', { status: 200, body: 'kept' }, 90_000);
    it.dependency.script = [FAIL];
    expect(await it.call()).toMatchObject({ mode: 'last-good', ageMs: 90_000, value: { body: 'kept' } });
  });

  test('a call without a cache key is never remembered', async () => {
    const it = world();
    it.dependency.script = [OK, FAIL];
    await it.guard.call({ operation: 'GET /recs' }, it.dependency.run, adapter);
    expect(await it.guard.call({ operation: 'GET /recs' }, it.dependency.run, adapter)).toMatchObject({
      mode: 'static',
    });
  });

  test('S1.6 to S1.8: opens at the third failure; 0 calls, reason breaker-open; a failed probe 1 call; a good one fresh', async () => {
    const it = world();
    it.dependency.script = [OK, FAIL, FAIL, FAIL];
    for (let call = 0; call < 4; call += 1) await it.call();
    expect(it.state()).toBe('open');
    await it.host.advance(1000);
    expect(await it.call()).toMatchObject({
      mode: 'last-good',
      reason: 'breaker-open',
      ageMs: 1000,
      attempts: 0,
    });
    expect(it.dependency.calls).toBe(4);

    await it.host.advance(4000);
    it.dependency.script = [FAIL];
    await it.call();
    expect(it.dependency.calls).toBe(5);
    expect(it.state()).toBe('open');
    await it.call();
    expect(it.dependency.calls).toBe(5);

    await it.host.advance(5000);
    it.dependency.script = [OK, FAIL];
    expect(await it.call()).toMatchObject({ kind: 'fresh' });
    expect(it.state()).toBe('closed');
    expect(await it.call()).toMatchObject({ mode: 'last-good', ageMs: 0 });
  });

  test('S1.9: without fallbacks the failure reaches the caller as a failure', async () => {
    const it = world({ fallbacks: [] });
    it.dependency.script = [OK, FAIL];
    await it.call();
    expect(await it.call()).toMatchObject({ kind: 'failed', value: { status: 503 } });
  });

  test('S1.10: forced off by a drill: no call, the fallback answers and names the drill', async () => {
    const it = world();
    await it.call();
    it.guard.drill(60_000);
    expect(await it.call()).toMatchObject({
      mode: 'last-good',
      reason: 'drill',
      cause: { kind: 'rejected', retryAfterMs: 60_000 },
    });
    expect(it.dependency.calls).toBe(1);
    it.guard.drill(0);
    expect(await it.call()).toMatchObject({ kind: 'fresh' });
  });

  test('S1.11, C145: near its end one call refreshes the entry, a thousand others get it at once', async () => {
    const it = world({ timeout: { attemptMs: 200, totalMs: 1000 } });
    await it.call();
    await it.host.advance(119_999);
    it.dependency.otherwise = HANG;
    const calls = Array.from({ length: 1000 }, () => it.call());
    await it.host.advance(1);
    expect(it.dependency.calls).toBe(2);
    const others = await Promise.all(calls.slice(1));
    for (const result of others)
      expect(result).toMatchObject({ mode: 'last-good', reason: 'refreshing', ageMs: 119_999 });
    await it.host.advance(200);
    expect(await calls[0]).toMatchObject({ kind: 'degraded', reason: 'timeout' });
  });
});

describe('last-good', () => {
  test('C143: 403 and 404 pass through and drop the entry; 503 and a connect failure are served from it', async () => {
    for (const status of [401, 403, 404, 410]) {
      const it = world();
      it.dependency.script = [OK, { reply: { status } }, FAIL];
      await it.call();
      expect(await it.call()).toMatchObject({ kind: 'fresh', value: { status } });
      expect(await it.call()).toMatchObject({ mode: 'static' });
    }
    const it = world();
    it.dependency.script = [OK, FAIL, { throws: new TransportError({ transport: 'connect' }) }];
    await it.call();
    expect(await it.call()).toMatchObject({ mode: 'last-good' });
    expect(await it.call()).toMatchObject({ mode: 'last-good' });
  });

  test('a gRPC refusal is thrown to the caller, with no fallback, and drops the entry', async () => {
    const it = world();
    it.dependency.script = [OK, { throws: new TransportError({ grpcStatus: 'NOT_FOUND' }) }, FAIL];
    await it.call();
    expect(await it.call()).toMatchObject({ kind: 'failed' });
    expect(await it.call()).toMatchObject({ mode: 'static' });
  });

  test('a slow older answer never replaces a newer one', async () => {
    const it = world();
    it.dependency.script = [
      { reply: { status: 200, body: 'older' }, afterMs: 500 },
      { reply: { status: 200, body: 'newer' } },
      FAIL,
    ];
    const slow = it.call();
    await it.host.advance(100);
    await it.call();
    await it.host.advance(500);
    await slow;
    expect(await it.call()).toMatchObject({ mode: 'last-good', value: { body: 'newer' } });
  });

  test('a relayed rejection is served from it, and is not this dependency’s failure', async () => {
    const it = world(
      {},
      {
        judge: ({ status }) => ({
          httpStatus: status,
          ...(status === 503 && { ignore: true, noRetry: true }),
        }),
      },
    );
    it.dependency.script = [OK, FAIL, FAIL, FAIL, FAIL];
    for (let call = 0; call < 4; call += 1) await it.call();
    expect(await it.call()).toMatchObject({ mode: 'last-good' });
    expect(it.state()).toBe('closed');
  });

  test('a cancelled call gets no fallback', async () => {
    const it = world();
    await it.call();
    it.dependency.otherwise = HANG;
    const controller = new AbortController();
    const result = it.call({ signal: controller.signal });
    await it.host.advance(1);
    controller.abort(new Error('gone'));
    expect(await result).toMatchObject({ kind: 'failed', cancelled: true });
    expect(await it.call({ signal: controller.signal })).toMatchObject({ cancelled: true, attempts: 0 });
    expect(it.dependency.calls).toBe(2);
  });
});

describe('simplified', () => {
  const popular = (): Promise<Reply> => Promise.resolve({ status: 200, body: 'popular' });

  test('stands in after a failure, before static', async () => {
    const it = world({ fallbacks: [simplified, fixed] }, { simplified: popular });
    it.dependency.script = [FAIL];
    expect(await it.call()).toMatchObject({
      mode: 'simplified',
      value: { body: 'popular' },
      reason: 'failure',
      ageMs: 0,
    });
  });

  test('is not used in a drill, which forces the whole dependency off', async () => {
    const it = world({ fallbacks: [simplified, fixed] }, { simplified: () => expect.unreachable() });
    it.guard.drill(1000);
    expect(await it.call()).toMatchObject({ mode: 'static', reason: 'drill' });
  });

  test('is skipped by an adapter without it, and while its breaker is open', async () => {
    const without = world({ fallbacks: [simplified, fixed] });
    without.dependency.script = [FAIL];
    expect(await without.call()).toMatchObject({ mode: 'static' });
    const open = world({ fallbacks: [simplified, fixed] }, { simplified: () => expect.unreachable() });
    open.guard.applyVerdict('target', {
      version: { era: 1, token: 1, epoch: 1 },
      state: 'open',
      share: 0,
      permitCalls: 0,
      permitMs: 0,
      ttlMs: 60_000,
      forced: undefined,
      forcedMs: 0,
      reason: '',
      cooldownMs: 0,
    });
    expect(await open.call()).toMatchObject({ mode: 'static', reason: 'breaker-open' });
  });

  test('C141: one that fails is passed over and told; without another the original failure is returned', async () => {
    for (const broken of [
      (): Promise<Reply> => Promise.reject(new Error('template')),
      (): Promise<Reply> => {
        throw new Error('template');
      },
    ]) {
      const it = world({ fallbacks: [simplified] }, { simplified: broken });
      it.dependency.script = [FAIL];
      expect(await it.call()).toMatchObject({ kind: 'failed', value: { status: 503 } });
      expect(it.events).toContainEqual(
        expect.objectContaining({
          type: 'fallback-failed',
          mode: 'simplified',
          error: new Error('template'),
        }),
      );
    }
  });

  test.each(['adapter', 'judge', 'event'] as const)(
    'an abort from within its %s ends the call once',
    async (where) => {
      const controller = new AbortController();
      const host = new FakeHost();
      let settled = 0;
      const guard = new Guard({
        host,
        settings: settings({ breaker: breaker(), fallbacks: [simplified, fixed] }),
        onEvent: ({ type }) => where === 'event' && type === 'fallback-failed' && controller.abort(),
      });
      const result = guard
        .call<Reply>(
          { operation: 'GET /', signal: controller.signal },
          () => Promise.resolve({ status: 503 }),
          {
            judge: ({ status }) => {
              if (where === 'judge' && status === 500) controller.abort();
              return { httpStatus: status };
            },
            judgeError: () => ({ failure: true }),
            simplified: () => {
              if (where === 'adapter') controller.abort();
              if (where === 'event') throw new Error('template');
              return Promise.resolve({ status: 500 });
            },
          },
        )
        .finally(() => (settled += 1));
      await host.advance(10_000);
      expect(await result).toMatchObject({ kind: 'failed', cancelled: true });
      expect(settled).toBe(1);
      expect(guard.read()).toMatchObject({ cancelled: 1, failed: 0, degraded: { static: 0 } });
    },
  );

  test('one that hangs ends with the attempt timeout, and the next fallback answers', async () => {
    const it = world(
      { fallbacks: [simplified, fixed], timeout: { attemptMs: 100, totalMs: 1000 } },
      { simplified: () => new Promise(() => undefined) },
    );
    it.dependency.script = [FAIL];
    const result = it.call();
    await it.host.advance(100);
    expect(await result).toMatchObject({ mode: 'static' });
    expect(it.host.pending).toBe(0);
  });

  test('under overload it answers before the queue, from 10 waiting on', async () => {
    const it = world(
      {
        fallbacks: [simplified],
        bulkhead: { maxConcurrent: 1, maxQueued: 50, maxWaitMs: 60_000 },
        timeout: { totalMs: 60_000 },
      },
      { simplified: popular },
    );
    it.dependency.otherwise = { reply: { status: 200 }, afterMs: 100 };
    const calls = Array.from({ length: 20 }, () => it.call());
    await it.host.advance(2000);
    const results = await Promise.all(calls);
    expect(results.filter(({ kind }) => kind === 'fresh')).toHaveLength(11);
    const simple = results.filter(({ kind }) => kind === 'degraded');
    expect(simple).toHaveLength(9);
    for (const result of simple)
      expect(result).toMatchObject({ mode: 'simplified', reason: 'bulkhead-full' });
  });

  test('one that fails under overload leaves the call its place in the queue', async () => {
    const it = world(
      {
        fallbacks: [simplified],
        bulkhead: { maxConcurrent: 1, maxQueued: 50, maxWaitMs: 60_000 },
        timeout: { totalMs: 60_000 },
      },
      { simplified: () => Promise.resolve({ status: 500 }) },
    );
    it.dependency.otherwise = { reply: { status: 200 }, afterMs: 100 };
    const calls = Array.from({ length: 12 }, () => it.call());
    await it.host.advance(2000);
    for (const result of await Promise.all(calls)) expect(result).toMatchObject({ kind: 'fresh' });
  });
});

test('C125: a drill goes through the same chain as a fault: counted, told, and answered by the fallback', async () => {
  const it = world({ fallbacks: [fixed] });
  it.guard.drill(1000);
  expect(await it.call()).toMatchObject({ mode: 'static', reason: 'drill' });
  expect(it.guard.read()).toMatchObject({ rejected: { drill: 1 }, degraded: { static: 1 } });
  expect(it.events.map(({ type }) => type)).toEqual(['rejected', 'degraded']);
});

test('C149: with the breaker open 1,000 calls at once all get the static answer', async () => {
  const it = world({ fallbacks: [fixed], bulkhead: { maxConcurrent: 1, maxQueued: 0, maxWaitMs: 0 } });
  it.dependency.script = [FAIL, FAIL, FAIL];
  for (let call = 0; call < 3; call += 1) await it.call();
  const results = await Promise.all(Array.from({ length: 1000 }, () => it.call()));
  for (const result of results) expect(result).toMatchObject({ mode: 'static', reason: 'breaker-open' });
  expect(it.guard.read().degraded.static).toBe(1003);
  expect(it.dependency.calls).toBe(3);
});
