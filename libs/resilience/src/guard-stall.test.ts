import {
  breakerSettings as breaker,
  FakeDependency,
  FakeHost,
  guardSettings as settings,
  HANG,
  replyAdapter as adapter,
} from '@bulwark/testing';
import { describe, expect, test } from 'vitest';
import { Guard } from './guard.js';

function world(ticks: boolean) {
  const host = new FakeHost({ ticks });
  const guard = new Guard({
    host,
    settings: settings({ breaker: breaker(), timeout: { attemptMs: 1000, totalMs: 5000 } }),
  });
  const dependency = new FakeDependency(host.sleep);
  const call = () => guard.call({ operation: 'GET /' }, dependency.run, adapter);
  const state = () => guard.gate('target')?.localState(host.nowMs());
  return { host, guard, dependency, call, state };
}

describe.each([false, true])('a process that stands still, with a ticker: %s', (ticks) => {
  test('reads what arrived meanwhile before it lets calls time out', async () => {
    const it = world(ticks);
    it.dependency.otherwise = { reply: { status: 200 }, afterMs: 1400 };
    const calls = [it.call(), it.call(), it.call()];
    await it.host.advance(20);
    // Answers arrived at 1,400 and timeouts were due at 1,000: the process woke to both at once.
    it.host.skip(60_000);
    await it.host.advance(100);
    for (const result of await Promise.all(calls)) expect(result).toMatchObject({ kind: 'fresh' });
    expect(it.state()).toBe('closed');
  });

  test('blames nobody for what timed out meanwhile', async () => {
    const it = world(ticks);
    it.dependency.otherwise = HANG;
    const calls = Array.from({ length: 10 }, () => it.call());
    await it.host.advance(20);
    it.host.skip(60_000);
    await it.host.advance(100);
    for (const result of await Promise.all(calls)) {
      expect(result).toMatchObject({ kind: 'failed', timedOut: true });
    }
    expect(it.state()).toBe('closed');
    expect(it.guard.gate('target')?.counters(it.host.nowMs())).toMatchObject({ failures: 0, ignored: 10 });
    expect(it.guard.read().inFlight).toBe(0);
  });

  test('is soon itself again: the next timeouts count', async () => {
    const it = world(ticks);
    it.dependency.otherwise = HANG;
    void it.call();
    await it.host.advance(20);
    it.host.skip(60_000);
    await it.host.advance(100);
    for (let n = 0; n < 3; n += 1) {
      void it.call();
      await it.host.advance(1100);
    }
    expect(it.state()).toBe('open');
  });
});
