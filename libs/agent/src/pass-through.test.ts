import { describe, expect, it } from 'vitest';
import { inherit } from './call-context.js';
import { judgeError, plainAdapter } from './judge.js';
import { passThrough } from './pass-through.js';

/** A clock whose timers run when the test says so. */
function fakeHost() {
  const timers = new Set<{ delayMs: number; task: () => void }>();
  return {
    nowMs: () => 0,
    random: () => 0,
    after: (delayMs: number, task: () => void) => {
      const timer = { delayMs, task };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    timers,
    fire: () => timers.forEach(({ task }) => task()),
  };
}
const never = () => new Promise<string>(() => undefined);
const adapter = plainAdapter<string>();

describe('a call that no policy matches', () => {
  it('is made once and answers what it answers, or what it throws', async () => {
    const host = fakeHost();
    const request = { operation: '' };
    expect(await passThrough(host, request, () => Promise.resolve('v'), adapter)).toMatchObject({
      kind: 'fresh',
      value: 'v',
      attempts: 1,
      policy: undefined,
    });
    const down = new Error('down');
    const throwing = () => {
      throw down;
    };
    for (const more of [{}, { deadlineMs: 5 }]) {
      const result = await passThrough(host, { ...request, ...more }, throwing, adapter);
      expect(result).toMatchObject({ kind: 'failed', error: down, timedOut: false, cancelled: false });
    }
    expect(host.timers.size).toBe(0);
  });

  it('is not broken by a judge that throws', async () => {
    const broken = plainAdapter<string>(() => {
      throw new Error('a judge');
    });
    const down = () => Promise.reject(new Error('down'));
    const result = await passThrough(fakeHost(), { operation: '' }, down, broken);
    expect(result).toMatchObject({ kind: 'failed', error: { message: 'down' }, retriesExhausted: false });
  });

  it('ends at the caller’s deadline, and its attempt is told', async () => {
    const host = fakeHost();
    let signal: AbortSignal | undefined;
    const call = passThrough(
      host,
      { operation: '', deadlineMs: 50 },
      (attempt) => {
        signal = attempt.signal;
        expect(attempt.timeoutMs).toBe(50);
        return never();
      },
      adapter,
    );
    host.fire();
    expect(await call).toMatchObject({ kind: 'failed', timedOut: true, attempts: 1 });
    expect(signal?.aborted).toBe(true);
  });

  it('is not made at all when nothing is left or the caller is gone already', async () => {
    let calls = 0;
    const run = () => Promise.resolve(String((calls += 1)));
    const host = fakeHost();
    for (const deadlineMs of [0, -5]) {
      expect(await passThrough(host, { operation: '', deadlineMs }, run, adapter)).toMatchObject({
        kind: 'rejected',
        reason: 'deadline',
        attempts: 0,
      });
    }
    const signal = AbortSignal.abort('gone');
    expect(await passThrough(host, { operation: '', signal }, run, adapter)).toMatchObject({
      cancelled: true,
      error: 'gone',
      attempts: 0,
    });
    expect(calls).toBe(0);
  });

  it('ends when the caller goes away, and leaves no listener and no timer behind', async () => {
    const host = fakeHost();
    const caller = new AbortController();
    const request = { operation: '', signal: caller.signal, deadlineMs: 1_000 };
    const call = passThrough(host, request, never, adapter);
    caller.abort('gone');
    expect(await call).toMatchObject({ cancelled: true, error: 'gone' });
    expect(host.timers.size).toBe(0);
  });
});

describe('a call made while another is answered', () => {
  it('has the smaller deadline of both, and is a repetition when either is', () => {
    const request = { operation: 'GET /', deadlineMs: 500 };
    expect(inherit({ deadlineMs: 200, callerAttempt: 2 }, request)).toEqual({
      operation: 'GET /',
      deadlineMs: 200,
      callerAttempt: 2,
    });
    expect(inherit({ deadlineMs: 900 }, request)).toEqual(request);
    expect(inherit({ deadlineMs: 200 }, { operation: 'x', deadlineMs: NaN })).toMatchObject({
      deadlineMs: 200,
    });
    expect(inherit({}, { operation: 'x' })).toEqual({ operation: 'x' });
  });
});

describe('what a thrown error means when nobody said', () => {
  it('is found in its status, its gRPC code or its connection, and is else a failure', () => {
    expect(judgeError(Object.assign(new Error(), { status: 404 }))).toEqual({ httpStatus: 404 });
    expect(judgeError(Object.assign(new Error(), { statusCode: 503 }))).toEqual({ httpStatus: 503 });
    expect(judgeError(Object.assign(new Error(), { code: 14, details: 'away' }))).toMatchObject({
      grpcStatus: 'UNAVAILABLE',
    });
    expect(judgeError(Object.assign(new Error(), { code: 'ECONNRESET' }))).toEqual({ transport: 'reset' });
    expect(judgeError(new Error('no stock'))).toEqual({ failure: true });
    expect(judgeError('text')).toEqual({ failure: true });
  });
});
