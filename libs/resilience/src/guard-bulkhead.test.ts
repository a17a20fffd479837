import {
  breakerSettings as breaker,
  FAIL,
  FakeDependency,
  FakeHost,
  guardSettings as settings,
  HANG,
  type Reply,
  replyAdapter as adapter,
  retrySettings as retry,
} from '@bulwark/testing';
import { describe, expect, test } from 'vitest';
import type { CallResult } from './call.js';
import { Guard } from './guard.js';
import type { GuardSettings } from './settings.js';

function world(overrides: Partial<GuardSettings> = {}, host = new FakeHost()) {
  const guard = new Guard({ host, settings: settings(overrides) });
  const dependency = new FakeDependency(host.sleep);
  const call = (signal?: AbortSignal): Promise<CallResult<Reply>> =>
    guard.call({ operation: 'GET /', method: 'GET', ...(signal && { signal }) }, dependency.run, adapter);
  return { host, guard, dependency, call };
}

describe('S5', () => {
  test('S5: 200 callers on a hanging service, bulkhead 10: 10 in flight, the rest refused within 3 s with the numbers', async () => {
    const host = new FakeHost();
    const limit = (maxConcurrent: number) => ({
      timeout: { totalMs: 60_000 },
      bulkhead: { maxConcurrent, maxQueued: 500, maxWaitMs: 3000 },
    });
    const fraud = world(limit(10), host);
    const payment = world(limit(20), host);
    const inventory = world(limit(30), host);
    fraud.dependency.otherwise = { reply: { status: 200 }, afterMs: 30_000 };
    payment.dependency.otherwise = { reply: { status: 200 }, afterMs: 50 };
    inventory.dependency.otherwise = { reply: { status: 200 }, afterMs: 50 };

    const refusedAtMs: number[] = [];
    const calls = Array.from({ length: 200 }, async () => {
      const result = await fraud.call();
      if (result.kind === 'rejected') refusedAtMs.push(host.nowMs());
      return result;
    });
    await host.advance(0);
    expect(fraud.guard.read()).toMatchObject({ inFlight: 10, waiting: 190 });
    const beside = [
      ...Array.from({ length: 20 }, payment.call),
      ...Array.from({ length: 30 }, inventory.call),
    ];
    await host.advance(50);
    for (const result of await Promise.all(beside)) expect(result).toMatchObject({ kind: 'fresh' });
    expect([payment.dependency.peak, inventory.dependency.peak]).toEqual([20, 30]);

    await host.advance(40_000);
    const results = await Promise.all(calls);
    expect(fraud.dependency.peak).toBe(10);
    expect(fraud.dependency.calls).toBe(10);
    expect(results.filter(({ kind }) => kind === 'fresh')).toHaveLength(10);
    const refused = results.filter((result) => result.kind === 'rejected');
    expect(refused).toHaveLength(190);
    expect(new Set(refusedAtMs)).toEqual(new Set([3000]));
    expect(refused[0]).toMatchObject({
      reason: 'bulkhead-timeout',
      detail: expect.stringMatching(/^in flight 10 of 10, waiting \d+ of 500$/) as string,
    });
    expect(fraud.guard.read()).toMatchObject({ inFlight: 0, waiting: 0 });
    expect(host.pending).toBeLessThanOrEqual(3);
    for (const { guard } of [fraud, payment, inventory]) guard.close();
    expect(host.pending).toBe(0);
  });

  test('S5: with the breaker open in front nobody waits', async () => {
    const { host, guard, call, dependency } = world({
      breaker: breaker({ trip: { consecutiveFailures: 1 } }),
      bulkhead: { maxConcurrent: 10, maxQueued: 500, maxWaitMs: 3000 },
      timeout: { attemptMs: 100, totalMs: 5000 },
    });
    dependency.otherwise = HANG;
    const first = call();
    await host.advance(100);
    await first;
    const beganMs = host.nowMs();
    const results = await Promise.all(Array.from({ length: 200 }, () => call()));
    expect(host.nowMs() - beganMs).toBe(0);
    for (const result of results) expect(result).toMatchObject({ reason: 'breaker-open' });
    expect(guard.read().inFlight).toBe(0);
  });

  test('S5: no slot leaks by timeout, cancellation or an exception', async () => {
    const { host, guard, call, dependency } = world({
      bulkhead: { maxConcurrent: 2, maxQueued: 0, maxWaitMs: 0 },
      timeout: { attemptMs: 100, totalMs: 1000 },
    });
    dependency.script = [HANG, HANG];
    const controller = new AbortController();
    const hung = [call(), call(controller.signal)];
    await host.advance(10);
    expect(await call()).toMatchObject({ reason: 'bulkhead-full' });
    controller.abort();
    await host.advance(100);
    await Promise.all(hung);
    dependency.script = [{ throws: new Error('boom') }, { throws: new Error('boom') }];
    await Promise.all([call(), call()]);
    expect(guard.read().inFlight).toBe(0);
    expect(dependency.inFlight).toBe(0);
    expect(await call()).toMatchObject({ kind: 'fresh' });
  });

  test('S5: a slot is not held during a back-off', async () => {
    const { host, guard, call, dependency } = world({
      retry: retry({ backoff: { baseMs: 1000, maxMs: 1000, jitter: 'none' } }),
      bulkhead: { maxConcurrent: 1, maxQueued: 0, maxWaitMs: 0 },
    });
    dependency.script = [{ reply: { status: 503 } }];
    const retried = call();
    await host.advance(500);
    expect(guard.read().inFlight).toBe(0);
    expect(await call()).toMatchObject({ kind: 'fresh' });
    await host.advance(500);
    expect(await retried).toMatchObject({ kind: 'fresh', attempts: 2 });
  });
});

test('a queued call is never overtaken, and then rejected, by one that came later', async () => {
  const { host, guard, dependency, call } = world({
    bulkhead: { maxConcurrent: 1, maxQueued: 1, maxWaitMs: 1000 },
    timeout: { totalMs: 60_000 },
  });
  dependency.otherwise = { reply: { status: 200 }, afterMs: 10 };
  const order: number[] = [];
  const first = call().then(() => order.push(0));
  const queued = call().then(() => order.push(1));
  const late = first.then(() => call()).then(() => order.push(2));
  await host.advance(100);
  await Promise.all([queued, late]);
  expect(order).toEqual([0, 1, 2]);
  expect(dependency.peak).toBe(1);
  expect(guard.read().rejected['bulkhead-full']).toBe(0);
});

test('C133: a queued call that is cancelled never reaches the dependency', async () => {
  const { host, guard, dependency, call } = world({
    bulkhead: { maxConcurrent: 1, maxQueued: 3, maxWaitMs: 1000 },
  });
  dependency.otherwise = { reply: { status: 200 }, afterMs: 10 };
  const controller = new AbortController();
  const calls = [call(), call(), call(controller.signal), call()];
  controller.abort();
  await host.advance(100);
  const results = await Promise.all(calls);
  expect(results.map((result) => (result.kind === 'failed' ? 'cancelled' : result.kind))).toEqual([
    'fresh',
    'fresh',
    'cancelled',
    'fresh',
  ]);
  expect(dependency.calls).toBe(3);
  expect(guard.read().waiting).toBe(0);
});

test('on leaving the queue the breaker is looked at again', async () => {
  const { host, dependency, call } = world({
    breaker: breaker({ trip: { consecutiveFailures: 1 } }),
    bulkhead: { maxConcurrent: 1, maxQueued: 5, maxWaitMs: 1000 },
  });
  dependency.otherwise = { reply: { status: 503 }, afterMs: 10 };
  const calls = Array.from({ length: 4 }, () => call());
  await host.advance(100);
  const results = await Promise.all(calls);
  expect(dependency.calls).toBe(1);
  expect(
    results.slice(1).every((result) => result.kind === 'rejected' && result.reason === 'breaker-open'),
  ).toBe(true);
});

test('the wait in the queue ends with the caller’s deadline, and no attempt is begun with nothing left', async () => {
  const { host, guard, dependency } = world({
    bulkhead: { maxConcurrent: 1, maxQueued: 5, maxWaitMs: 3000 },
  });
  dependency.otherwise = { reply: { status: 200 }, afterMs: 1000 };
  const running = guard.call({ operation: 'GET /' }, dependency.run, adapter);
  const short = guard.call({ operation: 'GET /', deadlineMs: 200 }, dependency.run, adapter);
  await host.advance(200);
  expect(await short).toMatchObject({ kind: 'rejected', reason: 'bulkhead-timeout' });
  await host.advance(2000);
  await running;
  expect(dependency.calls).toBe(1);
});

test('a new generation with more room lets waiting calls in; places in the queue survive', async () => {
  const bulkhead = { maxConcurrent: 1, maxQueued: 5, maxWaitMs: 5000 };
  const { host, guard, dependency, call } = world({ bulkhead, timeout: { totalMs: 60_000 } });
  dependency.otherwise = { reply: { status: 200 }, afterMs: 100 };
  const calls = Array.from({ length: 4 }, () => call());
  guard.update(
    settings({
      generation: 8,
      bulkhead: { ...bulkhead, maxConcurrent: 2, maxQueued: 0 },
      timeout: { totalMs: 60_000 },
    }),
  );
  expect(dependency.calls).toBe(2);
  expect(guard.read().waiting).toBe(2);
  guard.update(settings({ generation: 9, timeout: { totalMs: 60_000 } }));
  expect(dependency.calls).toBe(4);
  await host.advance(100);
  for (const result of await Promise.all(calls)) expect(result).toMatchObject({ kind: 'fresh' });
});

test('C013: a probe that waited in the queue ends with its permit, so that the next one never runs beside it', async () => {
  const parts = {
    timeout: { totalMs: 10_000 },
    breaker: breaker({
      trip: { consecutiveFailures: 1 },
      cooldown: { initialMs: 100, maxMs: 100, factor: 1 },
      probe: { concurrent: 1, successesToClose: 1, timeoutMs: 80 },
    }),
  };
  const bulkhead = { maxConcurrent: 3, maxQueued: 3, maxWaitMs: 60 };
  const { host, guard, dependency, call } = world({ ...parts, bulkhead });
  const slow = { reply: { status: 200 }, afterMs: 150 };
  dependency.script = [slow, slow, FAIL];
  dependency.otherwise = HANG;
  for (let each = 0; each < 3; each += 1) void call();
  await host.advance(0);
  guard.update(settings({ ...parts, generation: 8, bulkhead: { ...bulkhead, maxConcurrent: 2 } }));
  await host.advance(100);
  void call();
  expect(guard.read().waiting).toBe(1);
  await host.advance(50);
  expect(dependency.probes).toEqual([false, false, false, true]);
  await host.advance(35);
  expect(dependency.inFlight).toBe(0);
  void call();
  await host.advance(0);
  expect(dependency.inFlight).toBe(1);
});
