import { constants } from 'node:http2';
import { describe, expect, it } from 'vitest';
import { encodeGrpcMessage, parseGrpcStatus, statusOfHttp, statusOfReset } from './grpc-status.js';

describe('the status of a gRPC answer', () => {
  it('follows the HTTP status when the answer names none', () => {
    const codes = [400, 401, 403, 404, 429, 502, 503, 504, 200, 302, 500].map(statusOfHttp);
    expect(codes).toEqual([13, 16, 7, 12, 14, 14, 14, 14, 2, 2, 2]);
  });

  it('follows the code of a reset stream', () => {
    const { NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM } = constants;
    expect([NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM].map(statusOfReset)).toEqual([
      14, 1, 8,
    ]);
    const { NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR, NGHTTP2_PROTOCOL_ERROR } = constants;
    expect([NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR, NGHTTP2_PROTOCOL_ERROR].map(statusOfReset)).toEqual([
      13, 13, 13,
    ]);
  });

  it('is read as a number, and its message written percent-encoded', () => {
    expect(['0', '14', '', 'x', '-1', undefined].map(parseGrpcStatus)).toEqual([
      0,
      14,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(encodeGrpcMessage('50 % — “so”\n')).toBe('50 %25 %E2%80%94 %E2%80%9Cso%E2%80%9D%0A');
  });
});
