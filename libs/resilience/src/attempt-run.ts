import type { Attempt } from './call.js';

/** What a timed-out attempt ends with. */
export class AttemptTimeoutError extends Error {
  readonly code = 'ATTEMPT_TIMEOUT';
  override readonly name = 'TimeoutError';

  constructor(readonly timeoutMs: number) {
    super(`no answer within ${Math.round(timeoutMs)} ms`);
  }
}

/** One attempt in flight, as the call that made it sees it. */
export interface RunningAttempt extends Attempt {
  /** Its end was heard; whatever it still says is ignored. */
  over: boolean;
  readonly startedMs: number;
  /** It has all of its policy timeout: running into it is the dependency's failure. */
  readonly full: boolean;
  /** Ends it from outside. A listener of the signal that throws is the host's to report. */
  abort(reason: unknown): void;
}

/** What can be ended from outside. Its signal exists from the first read on only: most attempts never look at it. */
export abstract class Abortable {
  over = false;
  private controller: AbortController | undefined = undefined;

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    return this.controller.signal;
  }

  abort(reason: unknown): void {
    this.over = true;
    // Made in any case: whoever reads the signal later finds it aborted.
    this.controller ??= new AbortController();
    this.controller.abort(reason);
  }
}

/** An attempt of a `CallExecution`, or of a fallback. */
export class AttemptRun extends Abortable implements RunningAttempt {
  timeoutMs = 0;
  probe = false;
  full = true;

  constructor(
    readonly number: number,
    readonly startedMs: number,
  ) {
    super();
  }
}
