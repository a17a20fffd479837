/** Three faults of a leading breaker library, and the growth that all of them fear, seen from outside the guard. */
import {
  breakerSettings,
  FAIL,
  FakeDependency,
  FakeHost,
  guardSettings,
  HANG,
  OK,
  type Reply,
  replyAdapter,
} from '@bulwark/testing';
import { expect, test } from 'vitest';
import { type CallResult, Guard, type GuardSettings } from './index.js';

const HOUR = 3_600_000;

function world(overrides: Partial<GuardSettings>) {
  const host = new FakeHost();
  const dependency = new FakeDependency(host.sleep);
  const guard = new Guard({ host, settings: guardSettings(overrides) });
  const call = (signal?: AbortSignal): Promise<CallResult<Reply>> =>
    guard.call({ operation: 'GET /', ...(signal !== undefined && { signal }) }, dependency.run, replyAdapter);
  const state = () => guard.gate('target')?.stateAt(host.nowMs()).state;
  return { host, dependency, guard, call, state };
}

test.each([
  ['less than a bucket short of the window', 8000, 'open'],
  ['as long as the window', 10_000, 'closed'],
  ['an hour', HOUR, 'closed'],
])(
  'fault 1: one failure after a gap of %s finds only what is still in the window',
  async (_gap, gapMs, state) => {
    const it = world({
      breaker: breakerSettings({
        trip: { failureRate: { ratio: 0.5, minimumCalls: 10, window: { ms: 10_000 } } },
      }),
    });
    it.dependency.otherwise = FAIL;
    for (let each = 0; each < 9; each += 1) await it.call();
    await it.host.advance(gapMs);
    await it.call();
    expect(it.state()).toBe(state);
  },
);

test('fault 1: so does one failure after an hour of nothing but successes before it', async () => {
  const it = world({
    breaker: breakerSettings({
      trip: { failureRate: { ratio: 0.5, minimumCalls: 1, window: { ms: 10_000 } } },
    }),
  });
  for (let each = 0; each < 50; each += 1) await it.call();
  it.dependency.otherwise = FAIL;
  await it.call();
  expect(it.state()).toBe('closed');
  await it.host.advance(HOUR);
  await it.call();
  expect(it.state()).toBe('open');
});

test('fault 2: a queued call is never overtaken, and never rejected because it was', async () => {
  const it = world({
    timeout: { totalMs: 60_000 },
    bulkhead: { maxConcurrent: 2, maxQueued: 3, maxWaitMs: 50_000 },
  });
  const begun: number[] = [];
  const results: string[] = [];
  const free: (() => void)[] = [];
  const call = (name: number): void => {
    const run = (): Promise<Reply> => {
      begun.push(name);
      return new Promise((resolve) => free.push(() => resolve({ status: 200 })));
    };
    void it.guard
      .call({ operation: 'GET /' }, run, replyAdapter)
      .then(({ kind }) => results.push(`${name} ${kind}`));
  };
  for (let name = 0; name < 5; name += 1) call(name);
  await it.host.advance(0);
  expect(begun).toEqual([0, 1]);
  for (let name = 5; name < 1005; name += 1) {
    // A slot falls free and a newcomer comes, in one tick and in either order; one place is free then, and no more.
    if (name % 2 === 0) {
      free.shift()?.();
      await it.host.advance(0);
      call(name);
    } else {
      free.shift()?.();
      call(name);
    }
    await it.host.advance(0);
    expect(it.guard.read().inFlight).toBe(2);
  }
  while (free.length > 0) {
    free.shift()?.();
    await it.host.advance(0);
  }
  expect(begun).toEqual([...begun].sort((a, b) => a - b));
  expect(results.filter((result) => result.endsWith('rejected'))).toEqual(
    // Only newcomers who found the queue full, before the slot that fell free was known to be.
    results.filter((result) => result.endsWith('rejected')).filter((result) => Number.parseInt(result) >= 5),
  );
  expect(results).toHaveLength(1005);
  const rejected = new Set(
    results.filter((result) => result.endsWith('rejected')).map((result) => Number.parseInt(result)),
  );
  for (const name of begun) expect(rejected.has(name)).toBe(false);
});

test.each([
  ['succeeds', OK, 'half-open', 'closed'],
  ['fails', FAIL, 'half-open', 'closed'],
])(
  'fault 3: a call begun before the trip that %s while the probe runs does not decide it',
  async (_how, late, during, after) => {
    const it = world({
      breaker: breakerSettings({ trip: { consecutiveFailures: 2 } }),
      timeout: { totalMs: 20_000 },
    });
    it.dependency.script = [{ ...late, afterMs: 5500 }, FAIL, FAIL, { ...OK, afterMs: 900 }, HANG];
    const early = it.call();
    await it.call();
    await it.call();
    expect(it.state()).toBe('open');
    await it.host.advance(5000);
    const probe = it.call();
    await it.host.advance(0);
    expect(it.dependency.probes).toEqual([false, false, false, true]);
    await it.host.advance(600);
    expect((await early).kind).toBe(late === OK ? 'fresh' : 'failed');
    expect(it.state()).toBe(during);
    // The probe is still the only one.
    expect(await it.call()).toMatchObject({ kind: 'rejected', reason: 'breaker-half-open' });
    await it.host.advance(400);
    expect((await probe).kind).toBe('fresh');
    expect(it.state()).toBe(after);
  },
);
