import { status } from '@grpc/grpc-js';
import { StoreError } from '@bulwark/store';
import { describe, expect, it } from 'vitest';
import { conflict, expired, invalid, notFound } from './api-error.js';
import { grpcStatusOf } from './grpc-status.js';
import { statusOf } from './http-status.js';
import { toApiError } from './store-api-error.js';

const subject = { plural: 'resiliencepolicies', kind: 'ResiliencePolicy', name: 'pay' };

describe('errors', () => {
  it('are told in the words that kubectl knows', () => {
    expect(statusOf(notFound(subject))).toMatchObject({
      code: 404,
      reason: 'NotFound',
      message: 'resiliencepolicies.bulwark.dev "pay" not found',
    });
    expect(statusOf(conflict(subject)).message).toBe(
      'Operation cannot be fulfilled on resiliencepolicies.bulwark.dev "pay": the object has been modified; ' +
        'please apply your changes to the latest version and try again',
    );
    expect(statusOf(expired(3, 10))).toMatchObject({
      code: 410,
      message: 'too old resource version: 3 (10)',
    });
  });

  it('name every problem of an invalid object, with the kind', () => {
    const error = invalid(subject, [
      { reason: 'FieldValueInvalid', field: 'spec.timeout', message: 'Invalid value' },
      { reason: 'FieldValueRequired', field: 'spec.target', message: 'Required value' },
    ]);
    expect(error.details.kind).toBe('ResiliencePolicy');
    expect(error.details.causes).toHaveLength(2);
    expect(error.code).toBe(422);
  });

  it('of the store are told apart: not reached is 503 and may be repeated, and tells no address', () => {
    const away = toApiError(new StoreError('unavailable', 'connect ECONNREFUSED 10.0.0.1:2379'));
    expect(away).toMatchObject({ code: 503, reason: 'ServiceUnavailable' });
    expect(away.message).not.toContain('10.0.0.1');
    expect(toApiError(new StoreError('unknown-outcome', 'x')).message).toContain('may or may not be stored');
  });

  it('that nobody expected tell a client nothing of the inside', () => {
    expect(toApiError(new TypeError('cannot read properties of undefined')).message).not.toContain(
      'undefined',
    );
  });

  it('keep their meaning over gRPC', () => {
    expect(grpcStatusOf(notFound(subject)).code).toBe(status.NOT_FOUND);
    expect(grpcStatusOf(conflict(subject)).code).toBe(status.ABORTED);
    expect(grpcStatusOf(new StoreError('unavailable', 'x')).code).toBe(status.UNAVAILABLE);
    expect(grpcStatusOf(new Error('x')).code).toBe(status.INTERNAL);
  });
});
