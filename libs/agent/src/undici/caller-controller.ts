import type { Dispatcher } from 'undici';
import type { CallerPace } from '../caller-pace.js';

type Controller = Dispatcher.DispatchController;

/**
 * The one controller a caller has, whatever attempt answers it. Pausing holds up the attempt that is being passed on,
 * which is time of the caller's and not of the dependency's.
 */
export class CallerController implements Controller {
  /** Of the answer being passed on. */
  #target: Controller | undefined;
  #paused = false;
  #reason: Error | null = null;
  /** Headers as they are passed on, marks included. */
  rawHeaders: NonNullable<Controller['rawHeaders']> | null = null;
  rawTrailers: NonNullable<Controller['rawTrailers']> | null = null;

  constructor(
    private readonly pace: CallerPace,
    private readonly onAbort: (reason: Error) => void,
  ) {}

  get aborted(): boolean {
    return this.#reason !== null;
  }

  get reason(): Error | null {
    return this.#reason;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** From now on this attempt's answer is the caller's. */
  set target(target: Controller) {
    this.#target = target;
    if (this.#paused) target.pause();
  }

  pause(): void {
    this.#paused = true;
    this.pace.hold();
    this.#target?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.pace.release();
    this.#target?.resume();
  }

  abort(reason: Error): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    this.onAbort(reason);
    this.#target?.abort(reason);
  }
}
