import {
  type Behaviour,
  breakerSettings as breaker,
  FakeDependency,
  FakeHost,
  guardSettings as settings,
  HANG,
  type Reply,
  replyAdapter as adapter,
  retrySettings as retry,
  TransportError,
} from '@bulwark/testing';
import { describe, expect, test } from 'vitest';
import type { CallRequest, CallResult } from './call.js';
import type { EngineEvent } from './events.js';
import { Guard } from './guard.js';
import type { GuardSettings } from './settings.js';

const answer = (status: number, retryAfterMs?: number): Behaviour => ({
  reply: { status, ...(retryAfterMs !== undefined && { retryAfterMs }) },
  afterMs: 250,
});

function world(overrides: Partial<GuardSettings> = {}, random: () => number = () => 0.5) {
  const host = new FakeHost({ random });
  const events: EngineEvent[] = [];
  const guard = new Guard({
    host,
    settings: settings({ retry: retry(), ...overrides }),
    onEvent: (event) => events.push(event),
  });
  const dependency = new FakeDependency(host.sleep);
  /** Makes one call and lets a minute pass: the result, and when it came. */
  const call = async (request: Partial<CallRequest> = {}): Promise<[CallResult<Reply>, number]> => {
    const beganMs = host.nowMs();
    let endedMs = NaN;
    const result = guard
      .call({ operation: 'GET /', method: 'GET', ...request }, dependency.run, adapter)
      .finally(() => (endedMs = host.nowMs() - beganMs));
    await host.advance(60_000);
    return [await result, endedMs];
  };
  return { host, guard, dependency, call, events };
}

describe('S4', () => {
  test('S4.1: 503, 503, 200 under 5 s: success at 2.25 s, 3 attempts, timeouts 5, 4.25, 3', async () => {
    const { dependency, call } = world();
    dependency.script = [answer(503), answer(503), answer(200)];
    const [result, endedMs] = await call();
    expect(result).toMatchObject({ kind: 'fresh', attempts: 3, value: { status: 200 } });
    expect(endedMs).toBe(2250);
    expect(dependency.timeouts).toEqual([5000, 4250, 3000]);
  });

  test('S4.2: 504, wait 0.5, 200: 2 attempts, timeouts 5, 4.25: the budget is not renewed', async () => {
    const { dependency, call } = world();
    dependency.script = [answer(504), answer(200)];
    expect((await call())[0]).toMatchObject({ kind: 'fresh', attempts: 2 });
    expect(dependency.timeouts).toEqual([5000, 4250]);
  });

  test('S4.3: a POST that got 503 and a GET that got 400 make 1 attempt', async () => {
    const { dependency, call } = world();
    dependency.script = [answer(503), answer(400)];
    expect((await call({ method: 'POST' }))[0]).toMatchObject({
      kind: 'failed',
      attempts: 1,
      retriesExhausted: false,
    });
    expect((await call())[0]).toMatchObject({ kind: 'fresh', attempts: 1, value: { status: 400 } });
    expect(dependency.calls).toBe(2);
  });

  test('a POST with an idempotency key is retried, a call without a method is not', async () => {
    const { dependency, call } = world();
    dependency.script = [answer(503), answer(200), answer(503)];
    expect((await call({ method: 'POST', idempotencyKey: 'k' }))[0]).toMatchObject({ attempts: 2 });
    const [result] = await call({ method: '' });
    expect(result).toMatchObject({ kind: 'failed', attempts: 1 });
  });

  test('S4.4, C053: 503 for ever, 3 attempts: stops at 3 calls and says that retries are used up', async () => {
    const { dependency, call } = world();
    dependency.otherwise = answer(503);
    expect((await call())[0]).toMatchObject({
      kind: 'failed',
      attempts: 3,
      retriesExhausted: true,
      value: { status: 503 },
    });
    expect(dependency.calls).toBe(3);
  });

  test('S4.5: 7 attempts of 0.25 s, sample 1.0, base 1 s, ceiling 8 s end at 32.75 s', async () => {
    const { dependency, call } = world(
      { timeout: { totalMs: 60_000 }, retry: retry({ maxAttempts: 7 }) },
      () => 1,
    );
    dependency.otherwise = answer(503);
    const [result, endedMs] = await call();
    expect(result).toMatchObject({ attempts: 7 });
    expect(endedMs).toBe(32_750);
  });

  test('S4.6: 0.5 s in all, 503 after 0.1, wait would be 1 s: gives up at 0.1', async () => {
    const { dependency, call, events } = world({ timeout: { totalMs: 500 } }, () => 1);
    dependency.otherwise = { reply: { status: 503 }, afterMs: 100 };
    const [result, endedMs] = await call();
    expect(result).toMatchObject({ kind: 'failed', attempts: 1, timedOut: false });
    expect(endedMs).toBe(100);
    expect(events).toContainEqual(expect.objectContaining({ type: 'retry-stopped', why: 'deadline' }));
  });

  test.each([0, -5])('S4.7: %i ms left: 0 calls', async (deadlineMs) => {
    const { dependency, call, guard } = world();
    expect((await call({ deadlineMs }))[0]).toMatchObject({
      kind: 'rejected',
      reason: 'deadline',
      attempts: 0,
    });
    expect(dependency.calls).toBe(0);
    expect(guard.read().rejected.deadline).toBe(1);
  });

  test('S4.9: Retry-After 2 s: never earlier than 2 s; not at all if it cannot fit', async () => {
    const { dependency, call } = world({}, () => 0);
    dependency.script = [answer(503, 2000), answer(200)];
    const [result, endedMs] = await call();
    expect(result).toMatchObject({ kind: 'fresh', attempts: 2 });
    expect(endedMs).toBe(2500);
    dependency.script = [answer(503, 2000)];
    const [short, shortMs] = await call({ deadlineMs: 2250 });
    expect(short).toMatchObject({ kind: 'failed', attempts: 1 });
    expect(shortMs).toBe(250);
  });

  test('S4.11: retries stay within the budget and are counted apart; a spent one returns the original answer', async () => {
    const { host, guard, dependency, events } = world({
      retry: retry({ budget: { ratio: 0.1, minPerSecond: 0, windowMs: 60_000 } }),
    });
    dependency.otherwise = { reply: { status: 503 } };
    const calls = Array.from({ length: 100 }, () =>
      guard.call({ operation: 'GET /', method: 'GET' }, dependency.run, adapter),
    );
    await host.advance(30_000);
    const results = await Promise.all(calls);
    expect(guard.read()).toMatchObject({ calls: 100, attempts: 110, retries: 10 });
    expect(dependency.calls).toBe(110);
    for (const result of results) expect(result).toMatchObject({ kind: 'failed', value: { status: 503 } });
    expect(events.filter((event) => event.type === 'retry-stopped' && event.why === 'budget').length).toBe(
      guard.read().retriesRefused,
    );
  });

  test('S4.12, C029: a breaker that opens between attempts stops the loop at once, without a spin', async () => {
    const { dependency, call, events } = world({
      retry: retry({ maxAttempts: 10, budget: { ratio: 1, minPerSecond: 10, windowMs: 60_000 } }),
      breaker: breaker({
        trip: { consecutiveFailures: 2 },
        cooldown: { initialMs: 600_000, maxMs: 600_000, factor: 1 },
      }),
      timeout: { totalMs: 60_000 },
    });
    dependency.otherwise = answer(503);
    const [result, endedMs] = await call();
    expect(result).toMatchObject({ kind: 'failed', attempts: 2, value: { status: 503 } });
    expect(endedMs).toBe(250 + 500 + 250);
    expect(events.filter(({ type }) => type === 'retry')).toHaveLength(1);
    expect((await call())[0]).toMatchObject({ kind: 'rejected', reason: 'breaker-open', attempts: 0 });
    expect(dependency.calls).toBe(2);
  });

  test('S4.12: a breaker that opens during the wait refuses the retry, which goes back to the budget', async () => {
    const { host, guard, dependency } = world({
      retry: retry({ budget: { ratio: 1, minPerSecond: 0, windowMs: 60_000 } }),
      breaker: breaker({ trip: { consecutiveFailures: 3 } }),
    });
    dependency.otherwise = { reply: { status: 503 } };
    const waiting = guard.call({ operation: 'GET /', method: 'GET' }, dependency.run, adapter);
    await host.advance(1);
    expect(guard.read().retriesInWindow).toBe(1);
    for (let other = 0; other < 2; other += 1) {
      await guard.call({ operation: 'POST /', method: 'POST' }, dependency.run, adapter);
    }
    await host.advance(1000);
    expect(await waiting).toMatchObject({ kind: 'failed', attempts: 1, value: { status: 503 } });
    expect(guard.read().retriesInWindow).toBe(0);
    expect(dependency.calls).toBe(3);
  });
});

describe('layers do not multiply', () => {
  test('S4.10: a call that is itself a retry makes one attempt', async () => {
    const { dependency, call } = world();
    dependency.otherwise = answer(503);
    expect((await call({ callerAttempt: 2 }))[0]).toMatchObject({ attempts: 1, retriesExhausted: false });
  });

  test('S4.10: an answer whose retries were used up below is not retried, and says so upward', async () => {
    const { host, guard, dependency } = world();
    dependency.otherwise = answer(503);
    const marked = { ...adapter, judge: (reply: Reply) => ({ httpStatus: reply.status, noRetry: true }) };
    const result = guard.call({ operation: 'GET /', method: 'GET' }, dependency.run, marked);
    await host.advance(60_000);
    expect(await result).toMatchObject({ kind: 'failed', attempts: 1, retriesExhausted: true });
  });

  test('S4.10: three layers of three attempts make 3 calls on a dead leaf', async () => {
    const host = new FakeHost({ random: () => 0 });
    const layers = [0, 1, 2].map(() => new Guard({ host, settings: settings({ retry: retry() }) }));
    let leafCalls = 0;
    type Answer = { status: number; exhausted: boolean };
    const through = async (layer: number, callerAttempt: number): Promise<Answer> => {
      const guard = layers[layer];
      if (guard === undefined) {
        leafCalls += 1;
        return { status: 503, exhausted: false };
      }
      const result = await guard.call<Answer>(
        { operation: 'GET /', method: 'GET', callerAttempt },
        (attempt) => through(layer + 1, attempt.number),
        {
          judge: ({ status, exhausted }) => ({ httpStatus: status, noRetry: exhausted }),
          judgeError: () => ({}),
        },
      );
      return { status: 503, exhausted: result.kind === 'failed' && result.retriesExhausted };
    };
    const result = through(0, 1);
    await host.advance(60_000);
    expect(await result).toEqual({ status: 503, exhausted: true });
    expect(leafCalls).toBe(3);
  });
});

describe('deadlines', () => {
  test('C127: the shorter of policy and caller holds, less what has passed', async () => {
    const { dependency, call } = world({ timeout: { totalMs: 2000 } });
    dependency.otherwise = HANG;
    const [short, shortMs] = await call({ deadlineMs: 200 });
    expect(short).toMatchObject({ kind: 'failed', timedOut: true });
    expect(shortMs).toBe(200);
    expect((await call({ deadlineMs: 20_000 }))[1]).toBe(2000);
    expect(dependency.timeouts).toEqual([200, 2000]);
  });

  test('C129: a call of 50 ms under a timeout of 5 s succeeds', async () => {
    const { dependency, call } = world();
    dependency.otherwise = { reply: { status: 200 }, afterMs: 50 };
    expect((await call())[0]).toMatchObject({ kind: 'fresh' });
  });

  test('C025: 20 calls that hang for their whole policy timeout trip the breaker', async () => {
    const { dependency, call, guard } = world({
      timeout: { attemptMs: 100, totalMs: 10_000 },
      retry: retry({ maxAttempts: 1 }),
      breaker: breaker({
        trip: { consecutiveFailures: 20 },
        cooldown: { initialMs: 600_000, maxMs: 600_000, factor: 1 },
      }),
    });
    dependency.otherwise = HANG;
    for (let number = 0; number < 20; number += 1) await call({ deadlineMs: 10_000 });
    expect(guard.gate('target')?.counters(0)).toMatchObject({ failures: 20, localState: 'open' });
  });

  test('1,000 calls with a deadline of 1 ms from one caller trip nothing', async () => {
    const { host, guard, dependency } = world({
      breaker: breaker(),
      timeout: { attemptMs: 100, totalMs: 1000 },
    });
    dependency.otherwise = HANG;
    const calls = Array.from({ length: 1000 }, () =>
      guard.call({ operation: 'GET /', method: 'GET', deadlineMs: 1 }, dependency.run, adapter),
    );
    await host.advance(10);
    for (const result of await Promise.all(calls)) expect(result).toMatchObject({ timedOut: true });
    expect(guard.gate('target')?.counters(10)).toMatchObject({
      failures: 0,
      ignored: 1000,
      localState: 'closed',
    });
  });

  test('the same without an attempt timeout: a deadline earlier than the policy’s total blames nobody', async () => {
    const { dependency, call, guard, host } = world({ breaker: breaker(), retry: retry({ maxAttempts: 1 }) });
    dependency.otherwise = HANG;
    for (let number = 0; number < 5; number += 1) await call({ deadlineMs: 4999 });
    expect(guard.gate('target')?.counters(host.nowMs())).toMatchObject({ failures: 0, ignored: 5 });
    await call({ deadlineMs: 5000 });
    expect(guard.gate('target')?.counters(host.nowMs())).toMatchObject({ failures: 1 });
  });

  test('S2.10, C037: without an attempt timeout a call that never ends counts when the policy’s total has passed', async () => {
    const { dependency, call, guard, host } = world({ breaker: breaker(), retry: retry({ maxAttempts: 1 }) });
    dependency.otherwise = HANG;
    await call();
    expect(guard.gate('target')?.counters(host.nowMs())).toMatchObject({ failures: 1 });
  });

  test('S2.10: with a slow rule the timeout counts as slow too', async () => {
    const slowRate = { slowerThanMs: 500, ratio: 1, minimumCalls: 2, window: { ms: 600_000 } };
    const { dependency, call, guard, host } = world({
      breaker: breaker({ trip: { slowRate } }),
      retry: retry({ maxAttempts: 1 }),
      timeout: { attemptMs: 800, totalMs: 2000 },
    });
    dependency.otherwise = HANG;
    await call();
    await call();
    expect(guard.gate('target')?.counters(host.nowMs())).toMatchObject({ slow: 2 });
    expect(guard.gate('target')?.localState(host.nowMs())).not.toBe('closed');
  });

  test('an attempt timeout is retried when the policy says so, and a late answer is ignored', async () => {
    const { dependency, call } = world({ timeout: { attemptMs: 100, totalMs: 5000 } });
    dependency.script = [
      { reply: { status: 200, body: 'late' }, afterMs: 300 },
      { reply: { status: 200, body: 'fresh' } },
    ];
    expect((await call())[0]).toMatchObject({ kind: 'fresh', attempts: 2, value: { body: 'fresh' } });
  });

  test('the signal aborts at the timeout, and is made only when it is read', async () => {
    const { host, guard } = world({
      timeout: { attemptMs: 100, totalMs: 5000 },
      retry: retry({ maxAttempts: 1 }),
    });
    let reason: unknown;
    const result = guard.call<Reply>(
      { operation: 'GET /' },
      (attempt) => {
        attempt.signal.addEventListener('abort', () => {
          reason = attempt.signal.reason;
        });
        return new Promise(() => undefined);
      },
      adapter,
    );
    await host.advance(100);
    expect(await result).toMatchObject({
      kind: 'failed',
      timedOut: true,
      error: { code: 'ATTEMPT_TIMEOUT' },
    });
    expect(reason).toMatchObject({ name: 'TimeoutError', timeoutMs: 100 });
    expect(host.pending).toBe(0);
  });
});

describe('what is retried', () => {
  test('transport faults of the listed kinds', async () => {
    const { dependency, call } = world({ retry: retry({ failures: new Set(['connect']) }) });
    dependency.script = [{ throws: new TransportError({ transport: 'connect' }) }, answer(200)];
    expect((await call())[0]).toMatchObject({ kind: 'fresh', attempts: 2 });
    dependency.script = [{ throws: new TransportError({ transport: 'reset' }) }];
    expect((await call())[0]).toMatchObject({ kind: 'failed', attempts: 1, error: { message: 'transport' } });
  });

  test('C123: 100 INVALID_ARGUMENT take nothing from the budget', async () => {
    const { guard, dependency } = world({
      retry: retry({ budget: { ratio: 0.2, minPerSecond: 0, windowMs: 60_000 } }),
    });
    dependency.otherwise = { throws: new TransportError({ grpcStatus: 'INVALID_ARGUMENT' }) };
    for (let call = 0; call < 100; call += 1) {
      await guard.call({ operation: 'a.B/C', idempotencyKey: 'k' }, dependency.run, adapter);
    }
    expect(guard.read().retriesInWindow).toBe(0);
    expect(dependency.calls).toBe(100);
  });

  test('a new generation keeps what the budget has counted', async () => {
    const budget = { ratio: 0, minPerSecond: 1 / 600, windowMs: 600_000 };
    const { guard, dependency, call } = world({ retry: retry({ budget }) });
    dependency.script = [answer(503), answer(200), answer(503)];
    expect((await call())[0]).toMatchObject({ kind: 'fresh', attempts: 2 });
    guard.update(settings({ generation: 8, retry: retry({ budget: { ...budget, ratio: 0.001 } }) }));
    expect((await call())[0]).toMatchObject({ kind: 'failed', attempts: 1, retriesExhausted: true });
    expect(guard.read()).toMatchObject({ retriesInWindow: 1, retriesRefused: 1 });
  });

  test('the cancelled wait of a retry gives its place in the budget back', async () => {
    const { guard, dependency, host } = world({
      retry: retry({ budget: { ratio: 1, minPerSecond: 0, windowMs: 60_000 } }),
    });
    dependency.otherwise = { reply: { status: 503 } };
    const controller = new AbortController();
    const result = guard.call(
      { operation: 'GET /', method: 'GET', signal: controller.signal },
      dependency.run,
      adapter,
    );
    await host.advance(10);
    expect(guard.read().retriesInWindow).toBe(1);
    controller.abort(new Error('gone'));
    expect(await result).toMatchObject({
      kind: 'failed',
      cancelled: true,
      attempts: 1,
      error: { message: 'gone' },
    });
    expect(guard.read().retriesInWindow).toBe(0);
    await host.advance(60_000);
    expect(dependency.calls).toBe(1);
  });
});

describe('an attempt that its caller holds up', () => {
  const heldUp = async (heldMs: number, holding: boolean) => {
    const host = new FakeHost({ random: () => 0.5 });
    const guard = new Guard({ host, settings: settings({ retry: retry(), breaker: breaker() }) });
    const dependency = new FakeDependency(host.sleep);
    dependency.script = [HANG];
    const held = { ...adapter, callerHold: () => ({ heldMs, holding }) };
    const call = guard.call({ operation: 'GET /', method: 'GET' }, dependency.run, held);
    await host.advance(60_000);
    return {
      result: await call,
      totals: guard.read(),
      counts: [...guard.gates()][0]?.counters(host.nowMs()),
    };
  };

  test('until its time is used up is nobody’s failure: not counted, not repeated', async () => {
    for (const [heldMs, holding] of [[1, true] as const, [2_500, false] as const]) {
      const { result, totals, counts } = await heldUp(heldMs, holding);
      expect(result).toMatchObject({ kind: 'failed', timedOut: true, cancelled: true, attempts: 1 });
      expect(totals).toMatchObject({ attempts: 1, retries: 0, failed: 0, cancelled: 1 });
      expect(counts).toMatchObject({ failures: 0, ignored: 1 });
    }
  });

  test('for a moment only, long before, is the dependency’s failure as ever', async () => {
    const { result, totals, counts } = await heldUp(20, false);
    expect(result).toMatchObject({ kind: 'failed', timedOut: true, cancelled: false });
    expect(totals).toMatchObject({ failed: 1, cancelled: 0 });
    expect(counts).toMatchObject({ failures: 1 });
  });

  test('is as long as the dependency took: no slow call by a slow caller', async () => {
    const host = new FakeHost({ random: () => 0.5 });
    const slowRule = breaker({
      trip: { slowRate: { ratio: 1, minimumCalls: 50, window: { ms: 60_000 }, slowerThanMs: 100 } },
    });
    const guard = new Guard({ host, settings: settings({ breaker: slowRule }) });
    const dependency = new FakeDependency(host.sleep);
    dependency.script = [answer(200), answer(200)];
    for (const heldMs of [200, 0]) {
      const held = { ...adapter, callerHold: () => ({ heldMs, holding: false }) };
      const call = guard.call({ operation: 'GET /' }, dependency.run, held);
      await host.advance(250);
      await call;
      const slow = heldMs > 0 ? 0 : 1;
      expect(guard.gate('target')?.counters(host.nowMs())).toMatchObject({ slow });
    }
  });
});
