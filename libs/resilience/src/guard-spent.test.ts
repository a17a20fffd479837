import {
  FakeDependency,
  FakeHost,
  guardSettings as settings,
  replyAdapter,
  type Reply,
  retrySettings as retry,
} from '@bulwark/testing';
import { describe, expect, test } from 'vitest';
import type { CallAdapter, CallResult, Spent } from './call.js';
import { Guard } from './guard.js';

const fixed = { kind: 'static', status: 200, body: 'fixed', contentType: 'text/plain' } as const;

async function failing(
  adapter: Partial<CallAdapter<Reply>>,
  behaviour: FakeDependency['otherwise'] = { reply: { status: 503 } },
) {
  const host = new FakeHost({ random: () => 0.5 });
  const guard = new Guard({
    host,
    settings: settings({ retry: retry(), timeout: { attemptMs: 500, totalMs: 5000 }, fallbacks: [fixed] }),
  });
  const dependency = new FakeDependency(host.sleep);
  dependency.otherwise = behaviour;
  const result = guard.call({ operation: 'GET /', method: 'GET' }, dependency.run, {
    ...replyAdapter,
    ...adapter,
  });
  await host.advance(60_000);
  return [dependency.calls, await result] as const;
}
const spent = (what: Spent) => ({ spent: () => what });

describe('a call of which something is used up', () => {
  test('is repeated and replaced while nothing is', async () => {
    const [calls, result] = await failing(spent('nothing'));
    expect(calls).toBe(3);
    expect(result).toMatchObject({ kind: 'degraded', mode: 'static' });
  });

  test('is not repeated once its request cannot be sent again; a fallback may serve, and nothing is exhausted', async () => {
    const [calls, result] = await failing(spent('sent'));
    expect(calls).toBe(1);
    expect(result).toMatchObject({ kind: 'degraded', mode: 'static', cause: { retriesExhausted: false } });
  });

  test('is neither repeated nor replaced once part of its answer was delivered', async () => {
    const [calls, result] = await failing(spent('delivered'));
    expect(calls).toBe(1);
    expect(result).toMatchObject({ kind: 'failed', value: { status: 503 }, retriesExhausted: false });
  });

  test('is not repeated when it times out either', async () => {
    const [calls, result] = await failing(spent('delivered'), { hangs: true });
    expect(calls).toBe(1);
    expect(result).toMatchObject({ kind: 'failed', timedOut: true });
  });

  test('is not repeated when the adapter cannot say', async () => {
    const broken = (): Spent => {
      throw new Error('a defect');
    };
    const [calls, result] = await failing({ spent: broken });
    expect(calls).toBe(1);
    expect(result).toMatchObject({ kind: 'degraded', mode: 'static' });
  });
});

test('a static answer is skipped where the transport cannot make one of it', async () => {
  const [, result]: readonly [number, CallResult<Reply>] = await failing({ makesStatic: false });
  expect(result).toMatchObject({ kind: 'failed', value: { status: 503 }, retriesExhausted: true });
});
