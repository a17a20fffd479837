import { guardSettings as settings } from '@bulwark/testing';
import { expect, test } from 'vitest';
import type { Judgement } from './call.js';
import { classify } from './classify.js';

const { failures } = settings();
const answered = (judgement: Judgement) => classify({ how: 'answered', judgement }, failures);
const threw = (judgement: Judgement) => classify({ how: 'threw', judgement }, failures);

test('an answer that names no status, 2xx, 3xx and gRPC OK are successes', () => {
  for (const judgement of [{}, { httpStatus: 200 }, { httpStatus: 304 }, { grpcStatus: 'OK' }]) {
    expect(answered(judgement)).toEqual({ kind: 'success', meaning: 'ok' });
  }
});

test('listed statuses and transport faults are failures', () => {
  expect(answered({ httpStatus: 500 })).toEqual({ kind: 'failure', meaning: 'unavailable' });
  expect(threw({ grpcStatus: 'UNAVAILABLE' }).kind).toBe('failure');
  expect(threw({ transport: 'connect' }).kind).toBe('failure');
  expect(threw({ transport: 'reset' }).kind).toBe('failure');
  expect(threw({ failure: true }).kind).toBe('failure');
});

test('S2.11: a caller’s own error is neutral and reaches the caller, unless it is listed', () => {
  for (const httpStatus of [400, 401, 403, 404, 410, 422]) {
    expect(answered({ httpStatus })).toEqual({ kind: 'ignored', meaning: 'refused' });
  }
  for (const grpcStatus of ['INVALID_ARGUMENT', 'NOT_FOUND', 'PERMISSION_DENIED', 'FAILED_PRECONDITION']) {
    expect(threw({ grpcStatus })).toEqual({ kind: 'ignored', meaning: 'refused' });
  }
  const listed = { ...failures, statuses: new Set([404]) };
  expect(classify({ how: 'answered', judgement: { httpStatus: 404 } }, listed).kind).toBe('failure');
});

test('"not now" that is not listed is neutral, and a fallback may stand in', () => {
  const overload = { kind: 'ignored', meaning: 'unavailable', overload: true };
  expect(answered({ httpStatus: 429 })).toEqual(overload);
  expect(threw({ grpcStatus: 'RESOURCE_EXHAUSTED' })).toEqual(overload);
  const few = { ...failures, statuses: new Set([503]) };
  expect(classify({ how: 'answered', judgement: { httpStatus: 500 } }, few).meaning).toBe('unavailable');
});

test('a relayed rejection is not the relayer’s failure', () => {
  const relayed = { httpStatus: 503, ignore: true, noRetry: true };
  expect(answered(relayed)).toEqual({ kind: 'ignored', meaning: 'unavailable' });
  for (const below of [{ httpStatus: 429 }, { grpcStatus: 'RESOURCE_EXHAUSTED' }]) {
    expect(answered({ ...below, ignore: true })).toEqual({ kind: 'ignored', meaning: 'unavailable' });
  }
});

test('C011: an error nobody classified is neutral', () => {
  expect(threw({})).toEqual({ kind: 'ignored', meaning: 'refused' });
});

test('C025: a full timeout is a failure, one cut short by the caller is not', () => {
  expect(classify({ how: 'timed-out', full: true }, failures).kind).toBe('failure');
  expect(classify({ how: 'timed-out', full: false }, failures).kind).toBe('ignored');
  expect(classify({ how: 'timed-out', full: true }, { ...failures, timeouts: false }).kind).toBe('ignored');
});

test('C003: a cancelled call is neither success nor failure', () => {
  expect(classify({ how: 'cancelled' }, failures)).toEqual({ kind: 'ignored', meaning: 'cancelled' });
  expect(threw({ grpcStatus: 'CANCELLED' }).kind).toBe('ignored');
});
