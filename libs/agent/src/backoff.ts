/** When to try the control plane again: full jitter (AWS, "Exponential Backoff And Jitter"), first retry quick. */
export interface BackoffOptions {
  /** Bound of the first wait, milliseconds. */
  readonly baseMs: number;
  /** Bound of every wait, milliseconds. */
  readonly maxMs: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

export class Backoff {
  #failures = 0;
  readonly #options: BackoffOptions;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Wait before the next try: uniform in 0..min(max, base × 2^failures). */
  nextMs(): number {
    return this.#options.random() * this.#ceiling(this.#options.baseMs);
  }

  /**
   * Wait after a refusal, which another try will hardly cure: between half and all of a ceiling ten times higher
   * than that of a lost connection.
   */
  nextAfterRefusalMs(): number {
    return (0.5 + this.#options.random() / 2) * this.#ceiling(this.#options.baseMs * 10);
  }

  /** Only after a connection has lived a while: a server that accepts and closes at once must not be hammered. */
  reset(): void {
    this.#failures = 0;
  }

  #ceiling(baseMs: number): number {
    const ceiling = Math.min(this.#options.maxMs, baseMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return ceiling;
  }
}
