/** Rows of the scenario tables and cases that no other file shows by themselves. */
import {
  breakerSettings,
  FAIL,
  FakeDependency,
  FakeHost,
  guardSettings,
  OK,
  type Reply,
  replyAdapter,
  retrySettings,
} from '@bulwark/testing';
import { expect, test } from 'vitest';
import { type CallResult, Guard, type GuardSettings } from './index.js';

function world(overrides: Partial<GuardSettings>, host = new FakeHost()) {
  const dependency = new FakeDependency(host.sleep);
  const guard = new Guard({ host, settings: guardSettings(overrides) });
  const call = (): Promise<CallResult<Reply>> =>
    guard.call({ operation: 'GET /', method: 'GET' }, dependency.run, replyAdapter);
  const state = () => guard.gate('target')?.stateAt(host.nowMs()).state;
  return { host, dependency, guard, call, state };
}

const STATIC = {
  kind: 'static',
  status: 200,
  body: '{"items":[]}',
  contentType: 'application/json',
} as const;

test('S1.7: a probe that fails leaves it open: exactly 1 call was made, and the next ordinary call makes 0', async () => {
  const it = world({ breaker: breakerSettings(), fallbacks: [STATIC] });
  it.dependency.otherwise = FAIL;
  for (let call = 0; call < 3; call += 1) await it.call();
  await it.host.advance(5000);
  const before = it.dependency.calls;
  const probing = await Promise.all([it.call(), it.call(), it.call()]);
  expect(it.dependency.calls - before).toBe(1);
  expect(probing.map(({ kind }) => kind)).toEqual(['degraded', 'degraded', 'degraded']);
  expect(it.state()).toBe('open');
  expect(await it.call()).toMatchObject({ kind: 'degraded', reason: 'breaker-open', attempts: 0 });
  expect(it.dependency.calls - before).toBe(1);
});

test('S1.10: an optional part forced off: the core answer is unchanged, and the answer names the missing part', async () => {
  const host = new FakeHost();
  const prices = world({ policy: 'shop/prices' }, host);
  const recommendations = world({ policy: 'shop/recommendations', fallbacks: [STATIC] }, host);
  prices.dependency.otherwise = { reply: { status: 200, body: '{"price":12}' } };
  recommendations.dependency.otherwise = { reply: { status: 200, body: '{"items":[1]}' } };

  /** A page of a part it needs and one it can do without. */
  async function page(): Promise<{
    core: string | undefined;
    optional: string | undefined;
    missing: string[];
  }> {
    const [core, optional] = await Promise.all([prices.call(), recommendations.call()]);
    if (core.kind !== 'fresh') throw new Error('no page without a price');
    const rest =
      optional.kind === 'fresh'
        ? optional.value.body
        : optional.kind === 'degraded'
          ? optional.fixed?.body
          : undefined;
    const missing = optional.kind === 'degraded' ? [`${optional.policy}: ${optional.reason}`] : [];
    return { core: core.value.body, optional: rest, missing };
  }
  const whole = await page();
  expect(whole).toEqual({ core: '{"price":12}', optional: '{"items":[1]}', missing: [] });
  recommendations.guard.drill(60_000);
  expect(await page()).toEqual({
    core: whole.core,
    optional: '{"items":[]}',
    missing: ['shop/recommendations@7: drill'],
  });
  expect(recommendations.dependency.calls).toBe(1);
  await host.advance(60_000);
  expect(await page()).toEqual(whole);
});

test('S2.5: the probe fails at 8: open until 13, 12.99 is refused', async () => {
  const it = world({ breaker: breakerSettings({ trip: { consecutiveFailures: 2 } }) });
  it.dependency.script = [FAIL, OK, FAIL, FAIL];
  for (let second = 0; second < 4; second += 1) {
    await it.call();
    if (second < 3) await it.host.advance(1000);
  }
  it.dependency.otherwise = FAIL;
  await it.host.advanceTo(8000);
  expect(await it.call()).toMatchObject({ kind: 'failed' });
  await it.host.advanceTo(12_990);
  expect(await it.call()).toMatchObject({ kind: 'rejected', reason: 'breaker-open', retryAfterMs: 10 });
  expect(it.dependency.calls).toBe(5);
  await it.host.advanceTo(13_000);
  await it.call();
  expect(it.dependency.calls).toBe(6);
});

test('S2.14: after the probe 10, 25 and 50 % of the calls reach the dependency, then all; a failing step opens again', async () => {
  const breaker = breakerSettings({
    cooldown: { initialMs: 1000, maxMs: 60_000, factor: 2 },
    recovery: { steps: [0.1, 0.25, 0.5, 1], stepForMs: 1000 },
  });
  const it = world({ breaker });
  it.dependency.script = [FAIL, FAIL, FAIL];
  for (let call = 0; call < 3; call += 1) await it.call();
  await it.host.advance(1000);
  await it.call();
  const shares: number[] = [];
  for (let step = 0; step < 4; step += 1) {
    const before = it.dependency.calls;
    for (let call = 0; call < 200; call += 1) {
      await it.call();
      if (call % 10 === 9) await it.host.advance(50);
    }
    shares.push((it.dependency.calls - before) / 200);
  }
  for (const [index, share] of [0.1, 0.25, 0.5, 1].entries()) expect(shares[index]).toBeCloseTo(share, 1);
  expect(it.state()).toBe('closed');

  it.dependency.script = [FAIL, FAIL, FAIL];
  for (let call = 0; call < 3; call += 1) await it.call();
  await it.host.advance(1000);
  await it.call();
  expect(it.state()).toBe('recovering');
  it.dependency.otherwise = FAIL;
  for (let call = 0; call < 200 && it.state() === 'recovering'; call += 1) await it.call();
  expect(it.state()).toBe('open');
  await it.host.advance(1999);
  expect(it.state()).toBe('open');
});

/** One call at a time on a dependency that always fails; how many attempts were made for each. */
async function attemptsOf(calls: number, retry: Parameters<typeof retrySettings>[0]): Promise<number[]> {
  const it = world({ retry: retrySettings({ backoff: { baseMs: 1, maxMs: 1, jitter: 'none' }, ...retry }) });
  it.dependency.otherwise = FAIL;
  const attempts: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    const result = it.call();
    await it.host.advance(20);
    attempts.push((await result).attempts);
  }
  return attempts;
}

test('C059: bounded by attempts, by a budget, or by both, whichever ends first', async () => {
  const budget = { ratio: 0, minPerSecond: 5, windowMs: 1000 };
  // A policy that names a budget alone has the usual 3 attempts; see the policy's defaults.
  expect(await attemptsOf(4, { maxAttempts: 3 })).toEqual([3, 3, 3, 3]);
  expect(await attemptsOf(4, { maxAttempts: 3, budget })).toEqual([3, 3, 2, 1]);
  expect(await attemptsOf(4, { maxAttempts: 10, budget })).toEqual([6, 1, 1, 1]);
  expect(await attemptsOf(4, { maxAttempts: 1, budget })).toEqual([1, 1, 1, 1]);
});

test('C153: with no calls at all every number is a number, and what is not known says so', () => {
  for (const settings of [
    {},
    {
      retry: retrySettings({ budget: { ratio: 0.1, minPerSecond: 10, windowMs: 1000 } }),
      breaker: breakerSettings({
        trip: { failureRate: { ratio: 0.5, minimumCalls: 20, window: { ms: 10_000 } } },
      }),
      bulkhead: { maxConcurrent: 5, maxQueued: 5, maxWaitMs: 10, adaptive: 'gradient' as const },
    },
  ]) {
    const { guard, host } = world(settings);
    const flat = JSON.stringify(guard.read());
    expect(flat).not.toMatch(/null|NaN|Infinity/);
    expect(JSON.parse(flat)).toEqual(guard.read());
    expect([...guard.gates()]).toEqual([]);
    // A key that was heard of and never called.
    guard.applyVerdict('target', {
      version: { era: 1, token: 1, epoch: 1 },
      state: 'closed',
      share: 0,
      permitCalls: 0,
      permitMs: 0,
      ttlMs: 1000,
      forced: undefined,
      forcedMs: 0,
      reason: '',
      cooldownMs: 0,
    });
    for (const gate of guard.gates()) {
      const counters = gate.counters(host.nowMs());
      expect(counters).toMatchObject({ successes: 0, failures: 0, runFailures: 0, runFirstFailureAgeMs: 0 });
      expect(counters.lastSuccessAgeMs).toBeUndefined();
      expect(JSON.stringify(counters)).not.toMatch(/null|NaN|Infinity/);
    }
  }
});
