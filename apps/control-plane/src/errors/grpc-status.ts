import { status } from '@grpc/grpc-js';
import type { ApiError } from './api-error.js';
import { toApiError } from './store-api-error.js';

/** How an API error looks to a gRPC caller: a code that tells bad input, absence, conflict and overload apart. */
export function grpcStatusOf(error: unknown): { code: status; details: string } {
  const known = toApiError(error);
  return { code: codeOf(known), details: known.message };
}

function codeOf(error: ApiError): status {
  switch (error.reason) {
    case 'BadRequest':
    case 'Invalid':
    case 'NotAcceptable':
    case 'UnsupportedMediaType':
    case 'RequestEntityTooLarge':
      return status.INVALID_ARGUMENT;
    case 'Forbidden':
      return status.PERMISSION_DENIED;
    case 'NotFound':
      return status.NOT_FOUND;
    case 'MethodNotAllowed':
      return status.UNIMPLEMENTED;
    case 'AlreadyExists':
      return status.ALREADY_EXISTS;
    case 'Conflict':
      return status.ABORTED;
    case 'Expired':
      return status.OUT_OF_RANGE;
    case 'TooManyRequests':
      return status.RESOURCE_EXHAUSTED;
    case 'ServiceUnavailable':
      return status.UNAVAILABLE;
    case 'Timeout':
      return status.DEADLINE_EXCEEDED;
    case 'InternalError':
      return status.INTERNAL;
  }
}
