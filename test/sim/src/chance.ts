import { seededRandom } from '@bulwark/testing';

/** Everything random of a simulation comes from one seed. */
export class Chance {
  readonly uniform: () => number;

  constructor(seed: number) {
    this.uniform = seededRandom(seed);
  }

  between(low: number, high: number): number {
    return low + this.uniform() * (high - low);
  }

  /** A whole number from low to high, both included. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  is(probability: number): boolean {
    return this.uniform() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.uniform() * items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  /** Time to the next event of a Poisson process; Infinity when there are none. */
  exponential(perMs: number): number {
    return perMs <= 0 ? Infinity : -Math.log(1 - this.uniform()) / perMs;
  }

  /** Events of a Poisson process with this mean: Knuth's product for small means, the normal limit for large ones. */
  poisson(mean: number): number {
    if (mean > 100) return Math.max(0, Math.round(mean + Math.sqrt(mean) * this.normal()));
    const limit = Math.exp(-mean);
    let count = -1;
    for (let product = 1; product > limit; product *= this.uniform()) count += 1;
    return Math.max(0, count);
  }

  private normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.uniform())) * Math.cos(2 * Math.PI * this.uniform());
  }
}
