import { StoreError } from '@bulwark/store';
import { ApiError, unavailable } from './api-error.js';

/** What a client of the API is told when the store fails. Nothing of the store's own text that may name hosts. */
export function storeApiError(error: StoreError): ApiError {
  const cause = { cause: error };
  switch (error.code) {
    case 'unavailable':
      return unavailable('the store cannot be reached; nothing was changed, try again', cause);
    case 'unknown-outcome':
      return unavailable(
        'the store did not answer in time: the change may or may not be stored; read before you try again',
        cause,
      );
    case 'closed':
      return unavailable('this replica is shutting down; try another one', cause);
    case 'lease-lost':
    case 'compacted':
      return unavailable('the store is recovering; try again', cause);
    case 'invalid':
    case 'in-use':
    case 'read-only':
    case 'newer-version':
    case 'corrupt':
      return new ApiError('InternalError', `the store refused the request (${error.code})`, {}, cause);
  }
}

/** Any error as one of the API's; what is not known becomes an InternalError that tells nothing of the inside. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof StoreError) return storeApiError(error);
  return new ApiError(
    'InternalError',
    'an unexpected error occurred; the log of this replica says more',
    {},
    { cause: error },
  );
}
