const OPEN = new Error('open');
const FULL = new Error('full');

/**
 * A breaker and a bulkhead written by hand for one place of one program, with nothing that a library needs: the least
 * that the job costs. It opens at a run of failures and has no half-open state but the first call after its cooldown.
 */
export class Floor {
  private failures = 0;
  private opensAgainMs = 0;
  private inFlight = 0;

  constructor(
    private readonly atFailures = 10,
    private readonly maxConcurrent = 100,
    private readonly cooldownMs = 3_600_000,
  ) {}

  async execute<T>(run: () => Promise<T>): Promise<T> {
    if (this.failures >= this.atFailures && performance.now() < this.opensAgainMs) throw OPEN;
    if (this.inFlight >= this.maxConcurrent) throw FULL;
    this.inFlight += 1;
    try {
      const value = await run();
      this.failures = 0;
      return value;
    } catch (error) {
      this.failures += 1;
      if (this.failures >= this.atFailures) this.opensAgainMs = performance.now() + this.cooldownMs;
      throw error;
    } finally {
      this.inFlight -= 1;
    }
  }
}
