import { seededRandom } from '@bulwark/testing';

/**
 * What a figure should be. It is about the ratio where a figure has a base, else about the value. `figure` is what is
 * asked for; only `near` allows a distance from it: `from` to `to`, both included.
 */
export type Reach =
  | { readonly kind: 'at-most'; readonly figure: number }
  | { readonly kind: 'at-least'; readonly figure: number }
  | { readonly kind: 'near'; readonly figure: number; readonly from: number; readonly to: number };

/** One measured thing, with one value a round. */
export interface Figure {
  /** Unique in its suite. */
  readonly name: string;
  /** "ns", "ms", "%", "requests/s", "KB"; "" = a plain number. */
  readonly unit: string;
  /** At least one; the median is reported. */
  readonly rounds: readonly number[];
  /** What it is measured against, in the same rounds: the ratio is the median of the rounds' ratios. */
  readonly base?: { readonly name: string; readonly rounds: readonly number[] };
  readonly reach?: Reach;
  /** What is known from elsewhere, to be shown beside: "203 ms". */
  readonly reference?: string;
  /** Whether the reach holds on any machine, however busy. Others are not judged in a quick run. Default false. */
  readonly exact?: boolean;
}

/** One line of `--json`. */
export interface Line {
  readonly suite: string;
  readonly name: string;
  /** The median of the rounds. */
  readonly value: number;
  readonly unit: string;
  /** The base's name; null = there is none. */
  readonly ratioTo: string | null;
  readonly ratio: number | null;
  /** The figure asked for; null = none was, or it is not judged in a quick run. */
  readonly reach: number | null;
  /** Whether this run met it; true where nothing was asked. */
  readonly ok: boolean;
  /** The rounds behind the median. */
  readonly runs: number;
}

/** A line with what only the table shows. */
export interface Measured extends Line {
  readonly asked: Reach | undefined;
  readonly reference: string;
  readonly lowest: number;
  readonly highest: number;
}

export interface BenchContext {
  /** Rounds per figure: 7 unless asked otherwise; fewer in a quick run. */
  readonly rounds: number;
  /** A bounded run for tests: as short as it can be while going through everything. */
  readonly quick: boolean;
  /** Reports a figure as soon as it is known. */
  readonly report: (figure: Figure) => void;
  /** Starts a titled part of the table. */
  readonly section: (title: string) => void;
}

/** A suite is a module that exports this. */
export interface Suite {
  /** As it is listed in `suites`. */
  readonly name: string;
  /** Resolves when everything is reported and nothing that it started still runs. */
  run(context: BenchContext): Promise<void>;
}

/** Peer name → measures once: a number, or several together. The value must not depend on how often it was called before. */
export type Peers<Name extends string, Value> = Readonly<
  Record<Name, (round: number) => Value | Promise<Value>>
>;

export interface Interleaving {
  /** At least 1. */
  readonly rounds: number;
  /** Unmeasured rounds before; default 1. */
  readonly warmUps?: number;
  /** Of the order; default 1. */
  readonly seed?: number;
}

/**
 * Measures peers against each other in the same process: each round asks every peer once, in an order shuffled anew,
 * so that a machine that becomes slower or busier is slow for all of them. Peers whose work lives in child processes
 * keep these running through all rounds. Answers one value a round for each peer.
 */
export async function interleave<Name extends string, Value = number>(
  peers: Peers<Name, Value>,
  { rounds, warmUps = 1, seed = 1 }: Interleaving,
): Promise<Record<Name, Value[]>> {
  const random = seededRandom(seed);
  const names = Object.keys(peers) as Name[];
  const values = Object.fromEntries(names.map((name) => [name, [] as Value[]])) as Record<Name, Value[]>;
  for (let round = -warmUps; round < rounds; round += 1) {
    for (const name of shuffled(names, random)) {
      const value = await peers[name](round);
      if (round >= 0) values[name].push(value);
    }
  }
  return values;
}

/** Fisher and Yates; leaves the given list alone. */
export function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const mixed = [...list];
  for (let last = mixed.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [mixed[last], mixed[other]] = [mixed[other] as T, mixed[last] as T];
  }
  return mixed;
}

/** Parts of a measurement: short enough that most are not interrupted, long enough to hold their share of collections. */
const SLICES = 25;

/**
 * Nanoseconds per call of an async function, awaited `calls` times one after the other: the median over slices of them,
 * so that being interrupted by another process is nobody's cost.
 */
export async function nanosecondsPerCall(calls: number, call: () => unknown): Promise<number> {
  const slice = Math.ceil(calls / SLICES);
  const slices: number[] = [];
  for (let made = 0; made < calls; made += slice) {
    const begin = process.hrtime.bigint();
    for (let n = 0; n < slice; n += 1) await call();
    slices.push(Number(process.hrtime.bigint() - begin) / slice);
  }
  return median(slices);
}

/** The middle value; the mean of the two middle ones for an even count. NaN for no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
}

/** The value that a share `q` (0..1) of the values does not exceed, by nearest rank. NaN for no values. */
export function percentile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? NaN;
}

export function reaches(value: number, reach: Reach): boolean {
  switch (reach.kind) {
    case 'at-most':
      return value <= reach.figure;
    case 'at-least':
      return value >= reach.figure;
    case 'near':
      return value >= reach.from && value <= reach.to;
  }
}

/** Judges a figure. A quick run judges only what holds on any machine. */
export function measured(suite: string, figure: Figure, quick: boolean): Measured {
  const { name, unit, rounds, base } = figure;
  if (rounds.length === 0) throw new Error(`${suite}: ${name} was measured in no round`);
  const ratio = base && median(rounds.map((value, round) => value / baseOf(base, round)));
  const asked = quick && figure.exact !== true ? undefined : figure.reach;
  const value = median(rounds);
  return {
    suite,
    name,
    value,
    unit,
    ratioTo: base?.name ?? null,
    ratio: ratio ?? null,
    reach: asked?.figure ?? null,
    // NaN reaches nothing: a figure that could not be measured is a miss.
    ok: asked === undefined || reaches(ratio ?? value, asked),
    runs: rounds.length,
    asked,
    reference: figure.reference ?? '',
    lowest: Math.min(...rounds),
    highest: Math.max(...rounds),
  };
}

function baseOf(base: { name: string; rounds: readonly number[] }, round: number): number {
  const value = base.rounds[round];
  if (value === undefined) throw new Error(`${base.name} has no value in round ${round + 1}`);
  return value;
}
