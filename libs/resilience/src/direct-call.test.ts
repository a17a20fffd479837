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
import type { Attempt, CallRequest } from './call.js';
import { Guard } from './guard.js';
import type { GuardSettings } from './settings.js';

/** A host with a ticker: calls are timed by its ticks. */
function world(overrides: Partial<GuardSettings> = {}) {
  const host = new FakeHost({ ticks: true, random: () => 0.5 });
  const guard = new Guard({ host, settings: settings({ breaker: breaker(), ...overrides }) });
  const dependency = new FakeDependency(host.sleep);
  const call = (request: Partial<CallRequest> = {}) =>
    guard.call<Reply>({ operation: 'GET /recs', method: 'GET', ...request }, dependency.run, adapter);
  const state = () => guard.gate('target')?.localState(host.nowMs());
  return { host, guard, dependency, call, state };
}

describe('a call that nothing stands in the way of, timed by ticks', () => {
  test('is fresh, and leaves nothing behind', async () => {
    const it = world();
    expect(await it.call()).toEqual({
      kind: 'fresh',
      value: { status: 200 },
      attempts: 1,
      policy: 'shop/recs@7',
    });
    expect(it.guard.read()).toMatchObject({ calls: 1, attempts: 1, fresh: 1, inFlight: 0 });
    await it.host.advance(100);
    expect(it.host.pending).toBe(0);
  });

  test('times out a tick late at most and never early, and that is the dependency’s failure', async () => {
    const it = world({ timeout: { attemptMs: 1000, totalMs: 5000 } });
    it.dependency.otherwise = HANG;
    for (let n = 0; n < 3; n += 1) {
      await it.host.advance(3);
      let result: unknown;
      void it.call().then((ended) => {
        result = ended;
      });
      await it.host.advance(999);
      expect(result).toBeUndefined();
      await it.host.advance(12);
      expect(result).toMatchObject({ kind: 'failed', timedOut: true });
    }
    expect(it.state()).toBe('open');
    expect(it.guard.read()).toMatchObject({ timeouts: 3, inFlight: 0 });
  });

  test('begun after the event loop was held up it has all of its time', async () => {
    const it = world({ timeout: { attemptMs: 1000, totalMs: 5000 } });
    await it.call();
    // The process computes for two seconds within the turn: the ticker still shows the time before.
    it.host.skip(2000);
    it.dependency.otherwise = { reply: { status: 200 }, afterMs: 900 };
    const result = it.call();
    await it.host.advance(900);
    expect(await result).toMatchObject({ kind: 'fresh' });
  });

  test('goes on with retries when it fails: one first attempt, counted once', async () => {
    const it = world({ retry: retry(), breaker: breaker({ trip: { consecutiveFailures: 10 } }) });
    it.dependency.script = [FAIL, FAIL];
    const result = it.call();
    await it.host.advance(10_000);
    expect(await result).toMatchObject({ kind: 'fresh', attempts: 3 });
    expect(it.dependency.calls).toBe(3);
    expect(it.guard.read()).toMatchObject({ calls: 1, attempts: 3, retries: 2, fresh: 1, inFlight: 0 });
  });

  test('keeps its policy when a new generation comes while it is under way', async () => {
    const it = world({ retry: retry() });
    it.dependency.script = [{ ...FAIL, afterMs: 50 }];
    const result = it.call();
    await it.host.advance(20);
    it.guard.update(settings({ generation: 8, breaker: breaker() }));
    await it.host.advance(10_000);
    expect(await result).toMatchObject({ kind: 'fresh', attempts: 2, policy: 'shop/recs@7' });
  });

  test('an end that comes after its timeout changes nothing', async () => {
    const it = world({ timeout: { attemptMs: 1000, totalMs: 5000 } });
    const late = new Promise<Reply>((resolve) => {
      void it.host.sleep(3000).then(() => resolve({ status: 200 }));
    });
    const result = it.guard.call<Reply>({ operation: '' }, () => late, adapter);
    await it.host.advance(4000);
    expect(await result).toMatchObject({ kind: 'failed', timedOut: true });
    expect(it.guard.gate('target')?.counters(it.host.nowMs())).toMatchObject({ successes: 0, failures: 1 });
    expect(it.guard.read().inFlight).toBe(0);
  });

  test('a success is never reported older than it is', async () => {
    const it = world();
    await it.call();
    await it.host.advance(9);
    await it.call();
    expect(it.guard.gate('target')?.counters(it.host.nowMs()).lastSuccessAgeMs).toBe(0);
  });

  test('counts into the window it belongs to: nine failures and a success make ten calls', async () => {
    const rate = { ratio: 0.5, minimumCalls: 10, window: { ms: 10_000 } };
    const it = world({ breaker: breaker({ trip: { failureRate: rate } }) });
    it.dependency.script = Array.from({ length: 9 }, () => FAIL);
    for (let n = 0; n < 9; n += 1) await it.call();
    expect(it.state()).toBe('closed');
    await it.call();
    expect(it.state()).toBe('open');
  });
});

describe('a value instead of a result', () => {
  const valued = {
    ...adapter,
    conclude: (result: { kind: string }): Reply => {
      if (result.kind === 'rejected') throw new Error('rejected');
      return { status: 599 };
    },
  };

  test('is the fresh one, or what the adapter makes of any other end', async () => {
    const it = world();
    const run = () => it.guard.run<Reply>({ operation: '' }, it.dependency.run, valued);
    expect(await run()).toEqual({ status: 200 });
    it.dependency.otherwise = FAIL;
    for (let n = 0; n < 3; n += 1) expect(await run()).toEqual({ status: 599 });
    await expect(run()).rejects.toThrow('rejected');
  });

  test('a function that throws at once is an attempt that failed', async () => {
    const it = world();
    const broken = (): Promise<Reply> => {
      throw new Error('at once');
    };
    expect(await it.guard.run<Reply>({ operation: '' }, broken, valued)).toEqual({ status: 599 });
    expect(it.guard.read()).toMatchObject({ attempts: 1, inFlight: 0 });
  });
});

test('without any timeout a call needs no timer, fails and is retried like any other', async () => {
  const it = world({ timeout: { totalMs: Infinity }, retry: retry() });
  it.dependency.script = [FAIL];
  const result = it.call();
  await it.host.advance(10_000);
  expect(await result).toMatchObject({ kind: 'fresh', attempts: 2 });
});

describe('a value under a policy without any timeout', () => {
  const valued = {
    ...adapter,
    conclude: (result: { kind: string }): Reply => ({ status: 599, body: result.kind }),
  };
  const unbounded = { timeout: { totalMs: Infinity } };

  test('is the attempt’s own, and its signal never aborts', async () => {
    const it = world(unbounded);
    let aborted: boolean | undefined;
    const run = (attempt: Attempt): Promise<Reply> => {
      aborted = attempt.signal.aborted;
      return Promise.resolve({ status: 204 });
    };
    expect(await it.guard.run<Reply>({ operation: '' }, run, valued)).toEqual({ status: 204 });
    expect(aborted).toBe(false);
    expect(it.guard.read()).toMatchObject({ calls: 1, attempts: 1, fresh: 1, inFlight: 0 });
    expect(it.guard.gate('target')?.counters(it.host.nowMs())).toMatchObject({ successes: 1 });
  });

  test('failures count, open the breaker, and are concluded; nothing is leaked', async () => {
    const it = world(unbounded);
    it.dependency.script = [FAIL, { throws: new Error('down') }, FAIL];
    const run = () => it.guard.run<Reply>({ operation: '' }, it.dependency.run, valued);
    for (let n = 0; n < 3; n += 1) expect(await run()).toEqual({ status: 599, body: 'failed' });
    expect(it.state()).toBe('closed');
    it.dependency.script = [FAIL];
    const late = run();
    it.dependency.script = [FAIL, FAIL, FAIL];
    for (let n = 0; n < 3; n += 1) await run();
    expect(await late).toEqual({ status: 599, body: 'failed' });
    expect(it.state()).toBe('open');
    expect(await run()).toEqual({ status: 599, body: 'rejected' });
    expect(it.guard.read().inFlight).toBe(0);
  });
});

describe('what users give in place of an asynchronous function', () => {
  const sloppy = (value: unknown) => value as Promise<Reply>;
  const policies: Partial<GuardSettings>[] = [{}, { timeout: { totalMs: Infinity } }, { mode: 'shadow' }];

  test.each(policies)('a plain value or a foreign promise is the answer: %j', async (overrides) => {
    const it = world(overrides);
    const foreign = { then: (resolve: (reply: Reply) => void) => resolve({ status: 201 }) };
    const valued = { ...adapter, conclude: (): Reply => ({ status: 599 }) };
    for (const [given, status] of [
      [{ status: 200 }, 200],
      [foreign, 201],
    ] as const) {
      expect(await it.guard.call<Reply>({ operation: '' }, () => sloppy(given), adapter)).toMatchObject({
        kind: 'fresh',
        value: { status },
      });
      expect(await it.guard.run<Reply>({ operation: '' }, () => sloppy(given), valued)).toEqual({ status });
    }
    expect(it.guard.gate('target')?.counters(it.host.nowMs())).toMatchObject({ successes: 4, failures: 0 });
  });

  test('no function at all is told at once, counts nowhere and leaves nothing waiting', async () => {
    const it = world({ timeout: { attemptMs: 1000, totalMs: 5000 } });
    const nothing = undefined as unknown as () => Promise<Reply>;
    const valued = { ...adapter, conclude: (): Reply => ({ status: 599 }) };
    await expect(it.guard.call<Reply>({ operation: '' }, nothing, adapter)).rejects.toThrow(
      'needs the function',
    );
    await expect(it.guard.run<Reply>({ operation: '' }, nothing, valued)).rejects.toThrow(
      'needs the function',
    );
    await it.host.advance(10_000);
    expect(it.guard.read()).toMatchObject({ calls: 0, attempts: 0, inFlight: 0 });
  });
});
