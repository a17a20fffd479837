import {
  breakerSettings,
  FAIL,
  FakeDependency,
  FakeHost,
  guardSettings,
  HANG,
  type Reply,
  replyAdapter,
} from '@bulwark/testing';
import { expect, test } from 'vitest';
import { type CallResult, Guard } from './index.js';

const SIMPLE = 'GET /popular';

/** Each operation has its own breaker: two failures open it for 100 ms. The dependency fails; the simplified call is `simple`. */
function world() {
  const host = new FakeHost();
  const [full, simple] = [new FakeDependency(host.sleep), new FakeDependency(host.sleep)];
  full.otherwise = FAIL;
  const guard = new Guard({
    host,
    keyOf: ({ operation }) => operation,
    settings: guardSettings({
      timeout: { totalMs: 300 },
      breaker: breakerSettings({
        per: ['operation'],
        trip: { consecutiveFailures: 2 },
        cooldown: { initialMs: 100, maxMs: 100, factor: 1 },
        probe: { concurrent: 1, successesToClose: 1, timeoutMs: 80 },
      }),
      fallbacks: [{ kind: 'simplified', operation: SIMPLE, whenQueued: Infinity }],
    }),
  });
  const call = (deadlineMs?: number): Promise<CallResult<Reply>> =>
    guard.call({ operation: 'GET /', ...(deadlineMs !== undefined && { deadlineMs }) }, full.run, {
      ...replyAdapter,
      simplified: (_operation, _request, attempt) => simple.run(attempt),
    });
  const state = () => guard.gate(SIMPLE)?.stateAt(host.nowMs()).state;
  return { host, guard, simple, call, state };
}

test('C025: a simplified call that the caller’s own short deadline cut says nothing about its operation', async () => {
  const { host, simple, call, state } = world();
  simple.otherwise = HANG;
  for (let each = 0; each < 20; each += 1) void call(1);
  await host.advance(10);
  expect(simple.calls).toBeGreaterThan(0);
  expect(state()).toBe('closed');
});

test('a simplified call that hangs for all of its time is a failure of its operation', async () => {
  const { host, simple, call, state } = world();
  simple.otherwise = HANG;
  for (let each = 0; each < 2; each += 1) void call();
  await host.advance(300);
  expect(state()).toBe('open');
});

test('C013: a simplified call that probes ends with its permit: the next one never runs beside it', async () => {
  const { host, simple, call, state } = world();
  simple.script = [FAIL, FAIL];
  simple.otherwise = HANG;
  for (let each = 0; each < 2; each += 1) void call();
  await host.advance(100);
  expect(state()).toBe('half-open');
  for (let round = 1; round <= 3; round += 1) {
    const before = simple.calls;
    for (let each = 0; each < 3; each += 1) void call();
    await host.advance(0);
    expect([simple.calls - before, simple.inFlight]).toEqual([1, 1]);
    await host.advance(80);
    expect(simple.inFlight).toBe(0);
    // The hanging probe was a failure: open for another 100 ms.
    expect(state()).toBe('open');
    await host.advance(100);
  }
});
