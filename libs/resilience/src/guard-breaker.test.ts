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
  retrySettings as retry,
  TransportError,
} from '@bulwark/testing';
import { describe, expect, test } from 'vitest';
import type { CallRequest, CallResult } from './call.js';
import type { EngineEvent } from './events.js';
import { Guard } from './guard.js';
import type { GuardOptions } from './guard-options.js';
import type { GuardSettings } from './settings.js';

const two = breaker({ trip: { consecutiveFailures: 2 } });

function world(overrides: Partial<GuardSettings> = {}, options: Partial<GuardOptions> = {}) {
  const host = new FakeHost();
  const events: EngineEvent[] = [];
  const guard = new Guard({
    host,
    settings: settings({ breaker: two, ...overrides }),
    onEvent: (event) => events.push(event),
    ...options,
  });
  const dependency = new FakeDependency(host.sleep);
  const call = (request: Partial<CallRequest> = {}): Promise<CallResult<Reply>> =>
    guard.call({ operation: 'GET /', ...request }, dependency.run, adapter);
  const state = (key = 'target') => guard.gate(key)?.localState(host.nowMs());
  return { host, guard, dependency, call, state, events };
}

type World = ReturnType<typeof world>;

/** fail, ok, fail, fail at 0, 1, 2, 3 s. */
async function tripAt3(it: World): Promise<void> {
  it.dependency.script = [FAIL, OK, FAIL, FAIL];
  for (let second = 0; second < 4; second += 1) {
    await it.host.advanceTo(second * 1000);
    await it.call();
  }
}

describe('S2 through the guard', () => {
  test('S2.1, S2.2: open at 3 until 8; a call at 7.99 is rejected and 0 calls reach the dependency', async () => {
    const it = world();
    await tripAt3(it);
    expect(it.state()).toBe('open');
    await it.host.advanceTo(7990);
    expect(await it.call()).toMatchObject({ kind: 'rejected', reason: 'breaker-open', retryAfterMs: 10 });
    expect(it.dependency.calls).toBe(4);
  });

  test('S2.3: a call admitted at 1 that succeeds at 7.99 leaves the breaker open', async () => {
    const it = world({ timeout: { totalMs: 60_000 } });
    it.dependency.script = [FAIL];
    await it.call();
    await it.host.advanceTo(1000);
    it.dependency.script = [{ reply: { status: 200 }, afterMs: 6990 }, OK, FAIL, FAIL];
    const early = it.call();
    await it.call();
    await it.call();
    await it.call();
    expect(it.state()).toBe('open');
    const openedMs = it.host.nowMs();
    await it.host.advanceTo(7990);
    expect(await early).toMatchObject({ kind: 'fresh' });
    expect(it.events.filter(({ type }) => type === 'breaker-transition').length).toBeLessThanOrEqual(2);
    expect(openedMs).toBe(1000);
    expect(it.state()).not.toBe('closed');
  });

  test('S2.4 to S2.6: of 8 at once at 8 exactly 1 is admitted; it fails: open until 13; the probe at 13 closes', async () => {
    const it = world();
    await tripAt3(it);
    await it.host.advanceTo(8000);
    it.dependency.script = [{ reply: { status: 503 } }];
    const results = await Promise.all(Array.from({ length: 8 }, () => it.call()));
    expect(it.dependency.calls).toBe(5);
    expect(results.filter(({ kind }) => kind === 'rejected')).toHaveLength(7);
    await it.host.advanceTo(12_990);
    expect(await it.call()).toMatchObject({ reason: 'breaker-open' });
    await it.host.advanceTo(13_000);
    expect(await it.call()).toMatchObject({ kind: 'fresh' });
    expect(it.dependency.probes.filter(Boolean)).toHaveLength(2);
    expect(it.state()).toBe('closed');
  });

  test('S2.7: another dependency is untouched throughout', async () => {
    const it = world();
    const other = new Guard({ host: it.host, settings: settings({ policy: 'shop/other', breaker: two }) });
    const healthy = new FakeDependency(it.host.sleep);
    await tripAt3(it);
    expect(await other.call({ operation: 'GET /' }, healthy.run, adapter)).toMatchObject({ kind: 'fresh' });
    expect(other.gate('target')?.counters(0)).toMatchObject({ failures: 0, rejected: 0 });
  });

  test('S2.9: below the minimum of 20 calls nothing opens; the 20th decides', async () => {
    const it = world({
      breaker: breaker({ trip: { failureRate: { ratio: 0.5, minimumCalls: 20, window: { calls: 20 } } } }),
    });
    it.dependency.otherwise = FAIL;
    for (let call = 0; call < 9; call += 1) await it.call();
    expect(it.state()).toBe('closed');
    it.dependency.otherwise = OK;
    for (let call = 9; call < 18; call += 1) await it.call();
    it.dependency.script = [FAIL];
    await it.call();
    expect(it.state()).toBe('closed');
    await it.call();
    expect(it.state()).toBe('open');
  });

  test('S2.11: rejections and the caller’s own errors are counted apart, never as failures', async () => {
    const it = world({ bulkhead: { maxConcurrent: 1, maxQueued: 0, maxWaitMs: 0 } });
    it.dependency.script = [
      { reply: { status: 404 } },
      { throws: new TransportError({ grpcStatus: 'INVALID_ARGUMENT' }) },
    ];
    await it.call();
    await it.call();
    it.dependency.script = [{ reply: { status: 200 }, afterMs: 100 }];
    const running = it.call();
    expect(await it.call()).toMatchObject({ kind: 'rejected', reason: 'bulkhead-full' });
    await it.host.advance(100);
    await running;
    it.dependency.script = [FAIL, FAIL];
    await it.call();
    await it.call();
    expect(await it.call()).toMatchObject({ reason: 'breaker-open' });
    expect(it.guard.gate('target')?.counters(0)).toMatchObject({
      successes: 1,
      failures: 2,
      ignored: 2,
      rejected: 1,
    });
    expect(it.guard.read().rejected).toMatchObject({ 'bulkhead-full': 1, 'breaker-open': 1 });
  });

  test('S2.12, C003: the probe’s caller cancels: the permit is free at once, the cooldown unchanged', async () => {
    const it = world();
    await tripAt3(it);
    await it.host.advanceTo(8000);
    const controller = new AbortController();
    it.dependency.script = [HANG];
    const probe = it.call({ signal: controller.signal });
    await it.host.advance(50);
    expect(await it.call()).toMatchObject({ reason: 'breaker-half-open' });
    controller.abort();
    expect(await probe).toMatchObject({ kind: 'failed', cancelled: true });
    expect(await it.call()).toMatchObject({ kind: 'fresh' });
    expect(it.state()).toBe('closed');
  });

  test('S2.12, C001: the bulkhead refuses the probe: the next call probes, and its success closes', async () => {
    const it = world({
      breaker: breaker({ trip: { consecutiveFailures: 1 } }),
      bulkhead: { maxConcurrent: 1, maxQueued: 0, maxWaitMs: 0 },
      timeout: { totalMs: 60_000 },
    });
    const controller = new AbortController();
    it.dependency.script = [HANG];
    const holder = it.call({ signal: controller.signal });
    // Another process's traffic made this one trip: told here by a bare outcome.
    const gate = it.guard.gate('target');
    const permit = gate?.admit(0);
    if (permit !== undefined && 'done' in permit)
      gate?.complete(permit, { kind: 'failure', durationMs: 1 }, 0);
    await it.host.advance(5000);
    expect(await it.call()).toMatchObject({ reason: 'bulkhead-full' });
    expect(await it.call()).toMatchObject({ reason: 'bulkhead-full' });
    controller.abort();
    await holder;
    expect(await it.call()).toMatchObject({ kind: 'fresh' });
    expect(it.state()).toBe('closed');
  });

  test('C011: a probe that fails before it is sent frees the permit and changes nothing', async () => {
    const it = world();
    await tripAt3(it);
    await it.host.advanceTo(8000);
    it.dependency.script = [{ throws: new Error('cannot serialise') }];
    expect(await it.call()).toMatchObject({ kind: 'failed', error: { message: 'cannot serialise' } });
    expect(await it.call()).toMatchObject({ kind: 'fresh' });
  });

  test('a probe that hangs fails after the probe’s own timeout, although the attempt has more', async () => {
    const it = world({ timeout: { attemptMs: 4000, totalMs: 60_000 } });
    await tripAt3(it);
    await it.host.advanceTo(8000);
    it.dependency.script = [HANG];
    const probe = it.call();
    await it.host.advance(1000);
    expect(await probe).toMatchObject({ kind: 'failed', timedOut: true });
    expect(it.state()).toBe('open');
    expect(await it.call()).toMatchObject({ reason: 'breaker-open', retryAfterMs: 5000 });
  });

  test('S2.15: one shard fails under a policy keyed by it: only that key opens', async () => {
    const it = world(
      { breaker: { ...two, per: ['call.shard'] } },
      { keyOf: (request) => `shard=${request.attributes?.['shard'] ?? ''}` },
    );
    it.dependency.script = [FAIL, FAIL];
    for (let call = 0; call < 2; call += 1) await it.call({ attributes: { shard: '7' } });
    expect(await it.call({ attributes: { shard: '7' } })).toMatchObject({ reason: 'breaker-open' });
    expect(await it.call({ attributes: { shard: '8' } })).toMatchObject({ kind: 'fresh' });
    expect([...it.guard.gates()].map(({ key }) => key)).toEqual(['shard=7', 'shard=8']);
  });
});

describe('the fleet’s word', () => {
  const version = { era: 1, token: 1, epoch: 1 };
  const open = {
    version,
    state: 'open' as const,
    share: 0,
    permitCalls: 0,
    permitMs: 1000,
    ttlMs: 30_000,
    forced: undefined,
    forcedMs: 0,
    reason: 'failure-rate',
    cooldownMs: 5000,
  };

  test('a verdict that came before the first call of its key is heeded', async () => {
    const it = world();
    expect(it.guard.applyVerdict('target', open)).toBe(true);
    expect(await it.call()).toMatchObject({ kind: 'rejected', reason: 'breaker-open', retryAfterMs: 5000 });
    expect(it.dependency.calls).toBe(0);
  });

  test('S2.8: a gate with the fleet’s permit makes exactly one call of 8 at once', async () => {
    const it = world();
    it.guard.applyVerdict('target', { ...open, state: 'half-open', permitCalls: 1 });
    await Promise.all(Array.from({ length: 8 }, () => it.call()));
    expect(it.dependency.calls).toBe(1);
    expect(it.guard.gate('target')?.counters(0).probe).toEqual({ version, outcome: 'success', calls: 1 });
  });

  test('a fleet probe ends by the permit’s deadline; with half of its timeout it counts as a failure', async () => {
    for (const [claimedAtMs, outcome] of [
      [300, 'failure'],
      [800, 'none'],
    ] as const) {
      const it = world();
      it.guard.applyVerdict('target', { ...open, state: 'half-open', permitCalls: 1, permitMs: 1000 });
      await it.host.advance(claimedAtMs);
      it.dependency.script = [HANG];
      const probe = it.call();
      await it.host.advanceTo(1000);
      expect(await probe).toMatchObject({ kind: 'failed', timedOut: true });
      expect(it.guard.gate('target')?.counters(1000).probe).toMatchObject({ outcome });
    }
  });

  test('a policy without a breaker hears no verdict', async () => {
    const it = world({ breaker: undefined } as unknown as Partial<GuardSettings>);
    expect(it.guard.applyVerdict('target', open)).toBe(false);
    expect(await it.call()).toMatchObject({ kind: 'fresh' });
    expect([...it.guard.gates()]).toEqual([]);
  });
});

describe('breaker keys', () => {
  test('are capped: further ones pass without a breaker, counted and told', async () => {
    const it = world(
      { breaker: breaker({ per: ['operation'] }) },
      { maxKeys: 2, keyOf: (request) => request.operation },
    );
    for (const operation of ['a', 'b', 'c', 'd']) await it.call({ operation });
    expect([...it.guard.gates()]).toHaveLength(2);
    expect(it.guard.read().withoutKey).toBe(2);
    expect(it.events.filter(({ type }) => type === 'keys-capped')).toHaveLength(1);
  });

  test('idle closed ones make room, open ones stay', async () => {
    const it = world(
      { breaker: breaker({ per: ['operation'] }) },
      { maxKeys: 2, keyOf: (request) => request.operation, idleMs: 60_000 },
    );
    it.dependency.script = [FAIL, FAIL, OK];
    for (const operation of ['open', 'open', 'idle']) await it.call({ operation });
    it.guard.applyVerdict('open', {
      version: { era: 1, token: 1, epoch: 1 },
      state: 'open',
      share: 0,
      permitCalls: 0,
      permitMs: 0,
      ttlMs: 600_000,
      forced: undefined,
      forcedMs: 0,
      reason: '',
      cooldownMs: 0,
    });
    await it.host.advance(61_000);
    await it.call({ operation: 'new' });
    expect([...it.guard.gates()].map(({ key }) => key)).toEqual(['open', 'new']);
  });
});

describe('users’ functions cannot break a call', () => {
  test('throwing sinks, judges and key makers are counted', async () => {
    const boom = (): never => {
      throw new Error('boom');
    };
    const host = new FakeHost();
    const guard = new Guard({
      host,
      settings: settings({ breaker: two }),
      onEvent: boom,
      onChange: boom,
      keyOf: boom,
    });
    const dependency = new FakeDependency(host.sleep);
    const throwing = { judge: boom, judgeError: boom };
    expect(await guard.call({ operation: 'GET /' }, dependency.run, throwing)).toMatchObject({
      kind: 'fresh',
    });
    dependency.otherwise = { throws: new Error('down') };
    expect(await guard.call({ operation: 'GET /' }, dependency.run, throwing)).toMatchObject({
      kind: 'failed',
      error: { message: 'down' },
    });
    expect(guard.read().callbacksFailed).toBeGreaterThan(0);
  });

  test('C139: a run that throws at once is an error like any other, with exactly one release', async () => {
    const it = world({ bulkhead: { maxConcurrent: 1, maxQueued: 0, maxWaitMs: 0 } });
    for (let call = 0; call < 3; call += 1) {
      const result = await it.guard.call(
        { operation: 'GET /' },
        () => {
          throw new TransportError({ failure: true });
        },
        adapter,
      );
      expect(result).toMatchObject({ kind: call < 2 ? 'failed' : 'rejected' });
    }
    expect(it.guard.read().inFlight).toBe(0);
  });
});

describe('a new generation in place', () => {
  test('the same rule keeps counts, and an open breaker stays open under any rule', async () => {
    const it = world();
    it.dependency.script = [FAIL, FAIL];
    await it.call();
    it.guard.update(
      settings({ generation: 8, breaker: { ...two, cooldown: { initialMs: 9000, maxMs: 9000, factor: 1 } } }),
    );
    expect(await it.call()).toMatchObject({ kind: 'failed', policy: 'shop/recs@8' });
    expect(await it.call()).toMatchObject({ reason: 'breaker-open', retryAfterMs: 9000 });
    it.guard.update(settings({ generation: 9, breaker: breaker({ trip: { consecutiveFailures: 50 } }) }));
    expect(await it.call()).toMatchObject({ reason: 'breaker-open', policy: 'shop/recs@9' });
  });

  test('a breaker taken out and put in again is what it was', async () => {
    const it = world();
    it.dependency.script = [FAIL, FAIL];
    await it.call();
    await it.call();
    it.guard.update(settings({ generation: 8 }));
    expect(await it.call()).toMatchObject({ kind: 'fresh' });
    it.guard.update(settings({ generation: 9, breaker: two }));
    expect(await it.call()).toMatchObject({ reason: 'breaker-open' });
  });

  test('a permit given under the old generation is completed under the new one', async () => {
    const it = world({ breaker: breaker({ trip: { consecutiveFailures: 1 } }) });
    it.dependency.script = [FAIL];
    await it.call();
    await it.host.advance(5000);
    it.dependency.script = [{ reply: { status: 200 }, afterMs: 100 }];
    const probe = it.call();
    it.guard.update(
      settings({
        generation: 8,
        breaker: breaker({
          trip: { consecutiveFailures: 1 },
          cooldown: { initialMs: 1, maxMs: 1, factor: 1 },
        }),
      }),
    );
    await it.host.advance(100);
    expect(await probe).toMatchObject({ kind: 'fresh' });
    expect(it.state()).toBe('closed');
  });
});

describe('shadow', () => {
  test('decides and counts, and changes nothing', async () => {
    const it = world({
      mode: 'shadow',
      timeout: { attemptMs: 100, totalMs: 1000 },
      fallbacks: [{ kind: 'static', status: 200, body: '{}', contentType: 'application/json' }],
    });
    it.dependency.script = [FAIL, FAIL];
    expect(await it.call()).toMatchObject({ kind: 'failed', value: { status: 503 } });
    await it.call();
    expect(it.state()).toBe('open');
    expect(await it.call()).toMatchObject({ kind: 'fresh' });
    expect(it.guard.read()).toMatchObject({ shadowRejected: 1, attempts: 3 });
    expect(it.events).toContainEqual(expect.objectContaining({ type: 'shadow', reason: 'breaker-open' }));
    expect(it.guard.gate('target')?.counters(0)).toMatchObject({ successes: 1, failures: 2, rejected: 1 });
  });

  test('lets a slow call end, and counts the timeout it would have been', async () => {
    const it = world({ mode: 'shadow', timeout: { attemptMs: 100, totalMs: 1000 } });
    it.dependency.script = [{ reply: { status: 200 }, afterMs: 5000 }];
    const slow = it.call();
    await it.host.advance(5000);
    expect(await slow).toMatchObject({ kind: 'fresh' });
    expect(it.dependency.timeouts).toEqual([Infinity]);
    expect(it.guard.gate('target')?.counters(5000)).toMatchObject({ failures: 1 });
  });

  test('blames nobody for a call that its caller held up', async () => {
    const it = world({ mode: 'shadow', timeout: { attemptMs: 100, totalMs: 1000 } });
    it.dependency.script = [{ reply: { status: 200 }, afterMs: 5000 }];
    const held = { ...adapter, callerHold: () => ({ heldMs: 4900, holding: false }) };
    const slow = it.guard.call({ operation: 'GET /' }, it.dependency.run, held);
    await it.host.advance(5000);
    expect(await slow).toMatchObject({ kind: 'fresh' });
    expect(it.guard.gate('target')?.counters(5000)).toMatchObject({ failures: 0, slow: 0, ignored: 1 });
  });
});

describe('a signal that aborts while the engine is at work', () => {
  test.each(['onChange', 'run', 'judge'] as const)(
    'from within %s ends the call once and leaks nothing',
    async (where) => {
      const controller = new AbortController();
      const abort = (): void => controller.abort(new Error('gone'));
      const host = new FakeHost();
      const guard = new Guard({
        host,
        settings: settings({
          breaker: two,
          bulkhead: { maxConcurrent: 1, maxQueued: 1, maxWaitMs: 10 },
          retry: retry(),
        }),
        onChange: () => where === 'onChange' && abort(),
      });
      const dependency = new FakeDependency(host.sleep);
      dependency.otherwise = FAIL;
      const result = guard.call(
        { operation: 'GET /', method: 'GET', signal: controller.signal },
        (attempt) => {
          if (where === 'run') abort();
          return dependency.run(attempt);
        },
        {
          ...adapter,
          judge: (reply) => {
            if (where === 'judge') abort();
            return adapter.judge(reply);
          },
        },
      );
      await host.advance(60_000);
      expect(await result).toMatchObject({ kind: 'failed', cancelled: true });
      expect(dependency.calls).toBe(1);
      expect(guard.read()).toMatchObject({ inFlight: 0, waiting: 0, cancelled: 1, failed: 0 });
    },
  );
});
