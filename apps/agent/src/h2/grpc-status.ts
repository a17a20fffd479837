import { constants } from 'node:http2';

/** The status codes this proxy gives itself. */
export const STATUS = {
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/** Of an answer without grpc-status: gRPC's "HTTP to gRPC Status Code Mapping". */
export function statusOfHttp(httpStatus: number): number {
  switch (httpStatus) {
    case 400:
      return STATUS.internal;
    case 401:
      return STATUS.unauthenticated;
    case 403:
      return STATUS.permissionDenied;
    case 404:
      return STATUS.unimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return STATUS.unavailable;
    default:
      return STATUS.unknown;
  }
}

/** Of a stream that was reset before its trailers: gRPC's "Errors" of HTTP/2 transport mapping. */
export function statusOfReset(code: number): number {
  switch (code) {
    case constants.NGHTTP2_REFUSED_STREAM:
      return STATUS.unavailable;
    case constants.NGHTTP2_CANCEL:
      return STATUS.cancelled;
    case constants.NGHTTP2_ENHANCE_YOUR_CALM:
      return STATUS.resourceExhausted;
    case constants.NGHTTP2_INADEQUATE_SECURITY:
      return STATUS.permissionDenied;
    default:
      return STATUS.internal;
  }
}

/** grpc-message: percent-encoded UTF-8, printable ASCII as it is. */
export function encodeGrpcMessage(text: string): string {
  let encoded = '';
  for (const byte of Buffer.from(text)) {
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

/** The code in grpc-status; undefined = absent or no number. */
export function parseGrpcStatus(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,3}$/.test(value) ? Number(value) : undefined;
}
