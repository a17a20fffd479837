export interface DrainCounts {
  readonly accepted: number;
  /** Accepted and over, however it ended. */
  readonly completed: number;
  readonly refused: number;
  readonly unfinished: number;
}

/** Why a side takes no calls: it does not know its policies yet, or it is shutting down. */
export type NoWork = 'starting' | 'draining';

/**
 * The calls that one side of the sidecar has taken on. Whatever protocol a call comes by, it is taken here, so that a
 * drain waits for all of them. A side takes nothing before `begin` and nothing after `stop`.
 */
export class AcceptedWork {
  #phase: NoWork | 'open' = 'starting';
  #accepted = 0;
  #completed = 0;
  #refused = 0;
  #settled: (() => void) | undefined;

  begin(): void {
    if (this.#phase === 'starting') this.#phase = 'open';
  }

  /** From now on every call is refused; those taken on go on. */
  stop(): void {
    this.#phase = 'draining';
  }

  /** Why the call at hand cannot be taken, which counts it as refused; undefined = it can, and `take` must follow. */
  refusal(): NoWork | undefined {
    if (this.#phase === 'open') return undefined;
    this.#refused += 1;
    return this.#phase;
  }

  /** Takes a call on. The answer is called at its real end; further calls of it do nothing. */
  take(): () => void {
    this.#accepted += 1;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.#completed += 1;
      if (this.inFlight === 0) this.#settled?.();
    };
  }

  get inFlight(): number {
    return this.#accepted - this.#completed;
  }

  /** Resolves when nothing is in flight, at the latest after `withinMs`. Not to be asked for twice at a time. */
  async settled(withinMs: number): Promise<void> {
    if (this.inFlight === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, withinMs);
      this.#settled = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#settled = undefined;
  }

  counts(): DrainCounts {
    return {
      accepted: this.#accepted,
      completed: this.#completed,
      refused: this.#refused,
      unfinished: this.inFlight,
    };
  }
}

/** Of both sides together. */
export function sumOf(sides: readonly DrainCounts[]): DrainCounts {
  const sum = { accepted: 0, completed: 0, refused: 0, unfinished: 0 };
  for (const side of sides) {
    sum.accepted += side.accepted;
    sum.completed += side.completed;
    sum.refused += side.refused;
    sum.unfinished += side.unfinished;
  }
  return sum;
}
