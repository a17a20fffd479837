import * as grpc from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { echoService } from './grpc-fixture.js';
import { grpcGuard, guardOf, type GrpcGuard, type GrpcOptions } from './grpc-options.js';
import { grpcRequest, mayBeRemembered, ownDeadlineUnixMs } from './grpc-request.js';

const request = (
  parts: { options?: grpc.CallOptions; metadata?: Record<string, string>; guard?: GrpcGuard } = {},
  client: GrpcOptions = {},
) => {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(parts.metadata ?? {})) metadata.set(name, value);
  const options = { ...parts.options, method_definition: echoService.unary };
  return grpcRequest({ options, metadata, guard: parts.guard ?? {}, nowUnixMs: 1_000 }, client);
};

describe('a gRPC call as the engine sees it', () => {
  it('is a POST with the operation "pkg.Service/Method"', () => {
    expect(request()).toEqual({ operation: 'demo.Echo/Unary', method: 'POST' });
  });

  it('is a GET or a PUT when its method is declared repeatable; the call’s own word is the last', () => {
    const idempotency = { 'demo.Echo/Unary': 'NO_SIDE_EFFECTS' } as const;
    expect(request({}, { idempotency }).method).toBe('GET');
    expect(request({ guard: { idempotency: 'IDEMPOTENT' } }, { idempotency }).method).toBe('PUT');
    expect(request({ guard: { idempotency: 'IDEMPOTENCY_UNKNOWN' } }, { idempotency }).method).toBe('POST');
  });

  it('has what is left of its own deadline, a parent call’s included', () => {
    expect(request({ options: { deadline: 1_250 } }).deadlineMs).toBe(250);
    expect(request({ options: { deadline: new Date(900) } }).deadlineMs).toBe(-100);
    expect(request({ options: { deadline: Infinity } }).deadlineMs).toBeUndefined();
    expect(request({ options: { deadline: new Date(NaN) } }).deadlineMs).toBeUndefined();
    const parent = { getDeadline: () => 1_100 } as NonNullable<grpc.CallOptions['parent']>;
    expect(ownDeadlineUnixMs({ deadline: 1_250, parent })).toBe(1_100);
    expect(ownDeadlineUnixMs({ deadline: 1_250, parent, propagate_flags: grpc.propagate.CANCELLATION })).toBe(
      1_250,
    );
  });

  it('reads the marks that a service passed on with all its metadata', () => {
    expect(request({ metadata: { 'bulwark-attempt': '2', 'idempotency-key': 'k' } })).toMatchObject({
      callerAttempt: 2,
      idempotencyKey: 'k',
    });
    expect(
      request({ metadata: { 'idempotency-key': 'k' }, guard: { idempotencyKey: 'own' } }).idempotencyKey,
    ).toBe('own');
  });

  it('is remembered when it changes nothing and its client says so, or when it asks for it itself', () => {
    const safe = request({ guard: { idempotency: 'NO_SIDE_EFFECTS' } });
    expect(mayBeRemembered(safe, {}, {})).toBe(false);
    expect(mayBeRemembered(safe, {}, { remember: true })).toBe(true);
    expect(mayBeRemembered(safe, { remember: false }, { remember: true })).toBe(false);
    expect(mayBeRemembered(request(), {}, { remember: true })).toBe(false);
    expect(mayBeRemembered(request(), { remember: true }, {})).toBe(true);
    expect(mayBeRemembered(request(), { cacheKey: 'ann' }, {})).toBe(true);
  });
});

it('a guard travels in call options and is found again', () => {
  const guard = { idempotencyKey: 'k' };
  expect(guardOf(grpcGuard(guard, { deadline: 5 }))).toBe(guard);
  expect(grpcGuard(guard, { deadline: 5 }).deadline).toBe(5);
  expect(guardOf({})).toEqual({});
});
