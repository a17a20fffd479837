import type { Attempt, CallAdapter, CallRequest, CallResult } from './call.js';

/** What is asked of one logical call. */
export interface CallTask<T> {
  readonly request: CallRequest;
  readonly run: (attempt: Attempt) => Promise<T>;
  readonly adapter: CallAdapter<T>;
  /** Called exactly once. */
  readonly settle: (result: CallResult<T>) => void;
}
