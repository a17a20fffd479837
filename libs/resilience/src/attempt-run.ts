import type { Attempt } from './call.js';

/** What a timed-out attempt ends with. */
export class AttemptTimeoutError extends Error {
  readonly code = 'ATTEMPT_TIMEOUT';
  override readonly name = 'TimeoutError';

  constructor(readonly timeoutMs: number) {
    super(`no answer within ${Math.round(timeoutMs)} ms`);
  }
}

/** One attempt in flight. Its signal exists from the first read on only. */
export class AttemptRun implements Attempt {
  /** Its end was heard; whatever it still says is ignored. */
  over = false;
  private controller: AbortController | undefined;
  private abortedWith: { readonly reason: unknown } | undefined;

  timeoutMs = 0;
  probe = false;
  /** It has all of its policy timeout: running into it is the dependency's failure. */
  full = true;

  constructor(
    readonly number: number,
    readonly startedMs: number,
  ) {}

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.abortedWith !== undefined) this.controller.abort(this.abortedWith.reason);
    }
    return this.controller.signal;
  }

  /** Ends it from outside. A listener of the signal that throws is the host's to report. */
  abort(reason: unknown): void {
    this.over = true;
    this.abortedWith = { reason };
    this.controller?.abort(reason);
  }
}
