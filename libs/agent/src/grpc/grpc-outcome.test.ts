import { status as Status } from '@grpc/grpc-js';
import { AttemptTimeoutError, type CallResult, type RejectionReason } from '@bulwark/resilience';
import { expect, it } from 'vitest';
import type { GrpcAnswer } from './grpc-end.js';
import { outcomeOf } from './grpc-outcome.js';

const rejected = (reason: RejectionReason, retryAfterMs?: number): CallResult<GrpcAnswer> => ({
  kind: 'rejected',
  reason,
  retryAfterMs,
  detail: 'numbers',
  attempts: 0,
  policy: 'shop/echo@1',
});

it.each<[RejectionReason, Status]>([
  ['breaker-open', Status.UNAVAILABLE],
  ['breaker-half-open', Status.UNAVAILABLE],
  ['breaker-recovering', Status.UNAVAILABLE],
  ['forced-open', Status.UNAVAILABLE],
  ['drill', Status.UNAVAILABLE],
  ['bulkhead-full', Status.RESOURCE_EXHAUSTED],
  ['bulkhead-timeout', Status.RESOURCE_EXHAUSTED],
  ['retry-budget', Status.RESOURCE_EXHAUSTED],
  ['deadline', Status.DEADLINE_EXCEEDED],
])('a rejection for %s is told as status %i, with its reason', (reason, code) => {
  const { status } = outcomeOf('echo', rejected(reason));
  expect(status.code).toBe(code);
  expect(status.metadata.getMap()).toEqual({ 'bulwark-rejected': reason });
});

it.each([
  [0, '0'],
  [12.2, '13'],
  [-5, '0'],
  [1e12, '2147483647'],
])('a wait of %d ms is pushed back as %s', (retryAfterMs, text) => {
  const { status } = outcomeOf('echo', rejected('breaker-open', retryAfterMs));
  expect(status.metadata.get('grpc-retry-pushback-ms')).toEqual([text]);
});

it('an attempt that could not even be begun is told with what was thrown', () => {
  const failed: CallResult<GrpcAnswer> = {
    kind: 'failed',
    value: undefined,
    error: new Error('Channel has been shut down'),
    timedOut: false,
    cancelled: false,
    attempts: 1,
    retriesExhausted: false,
    policy: undefined,
  };
  expect(outcomeOf('echo', failed).status).toMatchObject({
    code: Status.INTERNAL,
    details: 'Channel has been shut down',
  });
});

it.each([
  [0, 'Deadline exceeded: echo had no answer within 200 ms, after 1 attempt(s)'],
  [
    3,
    'Deadline exceeded: echo had sent 3 message(s), and was not at its end within 200 ms, after 1 attempt(s)',
  ],
])('a stream that its timeout cut after %i messages says how far it had come', (received, details) => {
  const cut: CallResult<GrpcAnswer> = {
    kind: 'failed',
    value: undefined,
    error: new AttemptTimeoutError(200),
    timedOut: true,
    cancelled: false,
    attempts: 1,
    retriesExhausted: false,
    policy: 'shop/echo@1',
  };
  const { status } = outcomeOf('echo', cut, { received });
  expect(status).toMatchObject({ code: Status.DEADLINE_EXCEEDED, details });
});
