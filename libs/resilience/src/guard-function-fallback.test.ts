import {
  breakerSettings as breaker,
  FAIL,
  FakeDependency,
  FakeHost,
  guardSettings as settings,
  type Reply,
  replyAdapter as adapter,
} from '@bulwark/testing';
import { expect, test } from 'vitest';
import type { CallAdapter, CallRequest } from './call.js';
import type { EngineEvent } from './events.js';
import { Guard } from './guard.js';
import type { GuardSettings } from './settings.js';

const STAND_IN: Reply = { status: 200, body: 'stand-in' };

function world(fallback: CallAdapter<Reply>['fallback'], overrides: Partial<GuardSettings> = {}) {
  const host = new FakeHost();
  const events: EngineEvent[] = [];
  const guard = new Guard({
    host,
    settings: settings({ breaker: breaker(), ...overrides }),
    onEvent: (event) => events.push(event),
  });
  const dependency = new FakeDependency(host.sleep);
  dependency.otherwise = FAIL;
  const call = (request: Partial<CallRequest> = {}) =>
    guard.call({ operation: 'GET /recs', ...request }, dependency.run, {
      ...adapter,
      ...(fallback && { fallback }),
    });
  return { host, guard, dependency, call, events };
}

test('the caller’s own function answers last, is told the failure, and the answer says so', async () => {
  const it = world((cause, reason) => {
    expect(reason).toBe('failure');
    expect(cause).toMatchObject({ kind: 'failed', value: { status: 503 } });
    return STAND_IN;
  });
  expect(await it.call()).toMatchObject({
    kind: 'degraded',
    mode: 'function',
    value: STAND_IN,
    cause: { kind: 'failed', value: { status: 503 } },
  });
  expect(it.guard.read().degraded.function).toBe(1);
});

test('the policy’s fallbacks come before it', async () => {
  const it = world(() => STAND_IN, {
    fallbacks: [{ kind: 'static', status: 200, body: '', contentType: 'text/plain' }],
  });
  expect(await it.call()).toMatchObject({ mode: 'static' });
});

test('S1.9: under a required contract it is never asked', async () => {
  const it = world(() => STAND_IN, { contract: 'required' });
  expect(await it.call()).toMatchObject({ kind: 'failed', value: { status: 503 } });
});

test('C141: one that throws, at once or later, leaves the original failure and is told', async () => {
  const thrown = [
    () => {
      throw new Error('bad template');
    },
    () => Promise.reject(new Error('bad template')),
  ];
  for (const fallback of thrown) {
    const it = world(fallback);
    expect(await it.call()).toMatchObject({ kind: 'failed', value: { status: 503 } });
    expect(it.events).toContainEqual(expect.objectContaining({ type: 'fallback-failed', mode: 'function' }));
  }
});

test('one that never ends is ended with the call’s time, and has a moment when that is used up', async () => {
  const it = world(() => new Promise<Reply>(() => undefined));
  const result = it.call({ deadlineMs: 50 });
  await it.host.advance(99);
  await it.host.advance(1);
  expect(await result).toMatchObject({ kind: 'failed', value: { status: 503 } });
});

test('a caller that leaves while it runs gets its own reason', async () => {
  const it = world(() => new Promise<Reply>(() => undefined));
  const leaving = new AbortController();
  const result = it.call({ signal: leaving.signal });
  await it.host.settle();
  leaving.abort(new Error('left'));
  expect(await result).toMatchObject({ kind: 'failed', cancelled: true });
});
