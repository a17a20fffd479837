import type { Attempt, CallAdapter, CallRequest, CallResult } from './call.js';

/** What is asked of one logical call. */
export interface CallWork<T> {
  readonly request: CallRequest;
  readonly run: (attempt: Attempt) => Promise<T>;
  readonly adapter: CallAdapter<T>;
}

/** And where its end goes. */
export interface CallTask<T> extends CallWork<T> {
  /** Called exactly once. */
  readonly settle: (result: CallResult<T>) => void;
}
