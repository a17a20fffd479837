import type { CallResult, EngineEvent, Host } from '@bulwark/resilience';
import type { Logger } from './logger.js';

export interface EventLogOptions {
  readonly logger: Logger;
  readonly nowMs: Host['nowMs'];
  readonly onEvent: ((event: EngineEvent) => void) | undefined;
}

/** A callback that throws does so at every call: one line in so long says it. */
const TELL_AGAIN_MS = 60_000;

/** Passes on what the engine tells, and logs what a person should know of it. */
export class EventLog {
  readonly #options: EventLogOptions;
  readonly #toldMs = new Map<string, number>();

  constructor(options: EventLogOptions) {
    this.#options = options;
  }

  /** What `onEvent` throws is the engine's to catch, which counts it. */
  heard(event: EngineEvent): void {
    if (event.type === 'breaker-transition') {
      const { from, to, reason } = event.transition;
      const fields = { policy: event.policy, key: event.key, from, to, reason };
      this.#options.logger.info(fields, 'breaker changed');
    }
    if (event.type === 'callback-failed') this.#callbackFailed(event);
    this.#options.onEvent?.(event);
  }

  /** Tells a call's own listener how it ended. What that throws, at once or later, is reported and changes nothing. */
  tell<T>(onResult: ((result: CallResult<T>) => unknown) | undefined, result: CallResult<T>): void {
    if (onResult === undefined) return;
    try {
      const said = onResult(result);
      // An async function fits the type too.
      if (said instanceof Promise) said.catch((error: unknown) => this.#resultFailed(result, error));
    } catch (error) {
      this.#resultFailed(result, error);
    }
  }

  #resultFailed({ policy = '' }: CallResult<unknown>, error: unknown): void {
    try {
      this.heard({ policy, type: 'callback-failed', callback: 'onResult', error });
    } catch {
      // Who is told throws as well: there is nobody left to tell.
    }
  }

  #callbackFailed(event: Extract<EngineEvent, { type: 'callback-failed' }>): void {
    const { policy, callback, error } = event;
    const nowMs = this.#options.nowMs();
    if (nowMs - (this.#toldMs.get(callback) ?? -Infinity) < TELL_AGAIN_MS) return;
    this.#toldMs.set(callback, nowMs);
    const reason = error instanceof Error ? error.message : String(error);
    const fields = { callback, reason, ...(policy !== '' && { policy }) };
    this.#options.logger.warn(fields, 'a callback threw; the call went on without it');
  }
}
