import { Metadata, status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { judgeError } from './judge.js';
import { judgeGrpc } from './judge-grpc.js';

const reader = (metadata: Record<string, string>) => (name: string) => metadata[name];
const silent = reader({});
const pushback = (text: string) => judgeGrpc(status.UNAVAILABLE, reader({ 'grpc-retry-pushback-ms': text }));

describe('what the end of a gRPC call means', () => {
  it('is named by its status, and UNKNOWN where the number says nothing', () => {
    expect(judgeGrpc(status.OK, silent)).toEqual({ grpcStatus: 'OK' });
    expect(judgeGrpc(status.UNAVAILABLE, silent)).toEqual({
      grpcStatus: 'UNAVAILABLE',
      noRetry: false,
      ignore: false,
    });
    expect(judgeGrpc(99, silent).grpcStatus).toBe('UNKNOWN');
  });

  it('waits at least as long as the server pushes back, 0 included', () => {
    expect(pushback('0')).toMatchObject({ retryAfterMs: 0, noRetry: false });
    expect(pushback(' 1500 ')).toMatchObject({ retryAfterMs: 1_500, noRetry: false });
    expect(pushback('999999999999999')).toMatchObject({ retryAfterMs: 999_999_999_999_999, noRetry: false });
  });

  it('never retries what is pushed back by a negative number or by junk', () => {
    for (const text of ['-1', '-99', '', 'soon', '1.5', '0x10', '1e3', '9'.repeat(400)]) {
      expect(pushback(text), text).toMatchObject({ noRetry: true });
      expect(pushback(text).retryAfterMs, text).toBeUndefined();
    }
  });

  it('may be retried elsewhere when an instance only starts or drains, and is no failure either', () => {
    expect(
      judgeGrpc(14, reader({ 'bulwark-rejected': 'draining', 'grpc-retry-pushback-ms': '1000' })),
    ).toEqual({
      ...{ grpcStatus: 'UNAVAILABLE', noRetry: false, ignore: true, retryAfterMs: 1_000 },
    });
  });

  it('is neither retried nor counted when a guard below rejected the call', () => {
    const judgement = judgeGrpc(
      status.UNAVAILABLE,
      reader({ 'bulwark-rejected': 'breaker-open', 'grpc-retry-pushback-ms': '4000' }),
    );
    expect(judgement).toEqual({
      grpcStatus: 'UNAVAILABLE',
      noRetry: true,
      ignore: true,
      retryAfterMs: 4_000,
    });
  });
});

describe('a thrown ServiceError', () => {
  const thrown = (code: number, marks: Record<string, string>) =>
    Object.assign(new Error('down'), { code, details: 'down', metadata: metadataOf(marks) });
  const metadataOf = (marks: Record<string, string>) => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(marks)) metadata.set(name, value);
    return metadata;
  };

  it('is judged with its metadata', () => {
    expect(judgeError(thrown(status.UNAVAILABLE, { 'grpc-retry-pushback-ms': '-1' }))).toMatchObject({
      grpcStatus: 'UNAVAILABLE',
      noRetry: true,
    });
    expect(judgeError(thrown(status.NOT_FOUND, {}))).toMatchObject({
      grpcStatus: 'NOT_FOUND',
      noRetry: false,
    });
  });

  it('may lack metadata, and an error that only looks a little like one is a plain failure', () => {
    const bare = Object.assign(new Error('down'), { code: status.INTERNAL, details: '' });
    expect(judgeError(bare)).toMatchObject({ grpcStatus: 'INTERNAL' });
    expect(judgeError(Object.assign(new Error('x'), { code: 99, details: '' }))).toEqual({ failure: true });
    expect(judgeError(Object.assign(new Error('x'), { code: 14 }))).toEqual({ failure: true });
  });
});
