/**
 * - `unavailable`: nothing was done; may be retried.
 * - `unknown-outcome`: a commit may or may not have happened: read before retrying.
 * - `compacted`: history before the asked point is gone: list again.
 * - `lease-lost`: the write named a lease that no longer lives.
 * - `in-use`, `read-only`, `newer-version`, `corrupt`: opening the embedded file failed; the message says what to do.
 * - `invalid`: the request breaks the port's bounds: a defect of the caller.
 * - `closed`: the store was closed.
 */
export type StoreErrorCode =
  | 'unavailable'
  | 'unknown-outcome'
  | 'compacted'
  | 'lease-lost'
  | 'in-use'
  | 'read-only'
  | 'newer-version'
  | 'corrupt'
  | 'invalid'
  | 'closed';

export class StoreError extends Error {
  override readonly name = 'StoreError';

  constructor(
    readonly code: StoreErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
