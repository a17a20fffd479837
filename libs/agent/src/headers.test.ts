import { describe, expect, it } from 'vitest';
import {
  attemptHeaders,
  degradedMarks,
  parseRetryAfterMs,
  readAnswerMarks,
  readIncomingMarks,
  rejectionProblem,
  retryAfterSeconds,
} from './headers.js';

const reader = (headers: Record<string, string>) => (name: string) => headers[name];

describe('the marks of an incoming call', () => {
  it('are read where they make sense and ignored where they are junk', () => {
    expect(
      readIncomingMarks(
        reader({ 'bulwark-deadline': '250', 'bulwark-attempt': '2', 'idempotency-key': 'k' }),
      ),
    ).toEqual({ deadlineMs: 250, callerAttempt: 2, idempotencyKey: 'k' });
    expect(readIncomingMarks(reader({ 'bulwark-deadline': 'soon', 'bulwark-attempt': '-1' }))).toEqual({});
    expect(readIncomingMarks(reader({ 'bulwark-deadline': '-5' }))).toEqual({ deadlineMs: 0 });
  });

  it('go on to the next hop: the time left, and that it is not the first attempt of some layer above', () => {
    expect(attemptHeaders({ number: 1, timeoutMs: 799.9 })).toEqual({ 'bulwark-deadline': '799' });
    expect(attemptHeaders({ number: 2, timeoutMs: 10 })['bulwark-attempt']).toBe('2');
    expect(attemptHeaders({ number: 1, timeoutMs: 10 }, 3)['bulwark-attempt']).toBe('3');
    expect(attemptHeaders({ number: 1, timeoutMs: Infinity })).toEqual({});
  });
});

describe('the marks of an answer', () => {
  it('say when not to retry, and whose rejection it is', () => {
    expect(readAnswerMarks(reader({ 'bulwark-retry': 'exhausted' }), 0)).toEqual({
      noRetry: true,
      rejectedBelow: false,
    });
    expect(readAnswerMarks(reader({ 'bulwark-rejected': 'breaker-open', 'retry-after': '2' }), 0)).toEqual({
      noRetry: true,
      rejectedBelow: true,
      retryAfterMs: 2_000,
    });
  });

  it('let a call go to another instance when this one is only starting or going away', () => {
    for (const reason of ['draining', 'starting']) {
      const marks = readAnswerMarks(reader({ 'bulwark-rejected': reason }), 0);
      expect(marks).toEqual({ noRetry: false, rejectedBelow: true });
    }
    const both = reader({ 'bulwark-rejected': 'draining', 'bulwark-retry': 'exhausted' });
    expect(readAnswerMarks(both, 0).noRetry).toBe(true);
  });

  it('hold Retry-After as seconds or as a date, and never junk', () => {
    const now = Date.parse('Wed, 21 Oct 2026 07:28:00 GMT');
    expect(parseRetryAfterMs('120', now)).toBe(120_000);
    expect(parseRetryAfterMs('Wed, 21 Oct 2026 07:28:30 GMT', now)).toBe(30_000);
    for (const junk of ['', 'soon', '-1', '1.5', 'Wed, 21 Oct 2020 07:28:00 GMT', '0x10', '2026-10-21']) {
      expect(parseRetryAfterMs(junk, now), junk).toBeUndefined();
    }
  });
});

describe('what this layer answers', () => {
  it('names a degraded answer exactly as DESIGN §13 writes it', () => {
    const degraded = {
      kind: 'degraded',
      mode: 'last-good',
      value: undefined,
      fixed: undefined,
      ageMs: 12_999,
      reason: 'breaker-open',
      cause: {
        kind: 'rejected',
        reason: 'breaker-open',
        retryAfterMs: 1,
        detail: '',
        attempts: 0,
        policy: 'p',
      },
      attempts: 0,
      policy: 'shop/shop-recommendations@7',
    } as const;
    const marks = (upstream: string, traceId?: string, rememberedAge?: string) =>
      degradedMarks(upstream, degraded, { traceId, rememberedAge });
    expect(marks('recommendations', 'abc')['bulwark-degraded']).toBe(
      'last-good;upstream="recommendations";reason="breaker-open";age=12;policy="shop/shop-recommendations@7";trace="abc"',
    );
    expect(marks('re"c\\o\n')['bulwark-degraded']).toContain('upstream="re\\"c\\\\o?"');
    expect(marks('a').age).toBe('12');
    expect(marks('a', undefined, '30')).toMatchObject({
      age: '42',
      'bulwark-degraded': expect.stringContaining('age=42') as string,
    });
  });

  it('rounds Retry-After up to whole seconds, never to 0', () => {
    expect([0, 1, 1_000, 1_001, undefined].map(retryAfterSeconds)).toEqual(['1', '1', '1', '2', '1']);
  });

  it('gives 503 for a rejection and 504 when no time was left', () => {
    const rejected = { detail: '10 in flight, 20 waiting', policy: 'shop/a@1' };
    expect(rejectionProblem('fraud', { ...rejected, reason: 'bulkhead-full' })).toMatchObject({
      status: 503,
      detail: '10 in flight, 20 waiting',
      type: 'urn:bulwark:problem:bulkhead-full',
    });
    expect(rejectionProblem('fraud', { ...rejected, reason: 'deadline' }).status).toBe(504);
    const open = { reason: 'breaker-open', detail: "the fleet's breaker", policy: 'shop/one@3' } as const;
    expect(rejectionProblem('up', open).detail).toBe("The fleet's breaker for up (policy shop/one) is open.");
  });
});
