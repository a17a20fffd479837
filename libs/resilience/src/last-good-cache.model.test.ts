import { agree, checkModel, commandsOf, seededRandom } from '@bulwark/testing';
import fc from 'fast-check';
import { test } from 'vitest';
import { LastGoodCache } from './index.js';

interface Remembered {
  readonly key: string;
  readonly value: number;
  readonly startedMs: number;
  readonly storedMs: number;
  /** Jitter is the cache's own: the model only knows within which bounds it lies. */
  readonly refreshMs: number;
  refresher: object | undefined;
}

const MOST = 3;

/** The obvious cache: a list, the most recently used at its end. */
class Pair {
  readonly cache: LastGoodCache<number>;
  private entries: Remembered[] = [];
  nowMs = 1000;

  constructor(
    private maxAgeMs: number,
    private jitter: number,
    seed: number,
  ) {
    this.cache = new LastGoodCache({ maxAgeMs, refreshJitter: jitter }, seededRandom(seed), MOST);
  }

  store(key: string, value: number, tookMs: number): void {
    const startedMs = this.nowMs - tookMs;
    this.cache.store(key, value, { startedMs, nowMs: this.nowMs });
    const held = this.held(key);
    if (held === undefined || held.startedMs <= startedMs) this.put(key, value, startedMs, this.nowMs);
  }

  restore(key: string, value: number, ageMs: number): void {
    this.cache.restore(key, value, { ageMs, nowMs: this.nowMs });
    const storedMs = this.nowMs - ageMs;
    const kept = ageMs >= 0 && ageMs <= this.maxAgeMs && this.held(key) === undefined;
    if (kept) this.put(key, value, storedMs, storedMs);
  }

  find(key: string): void {
    const found = this.cache.find(key, this.nowMs);
    const held = this.held(key);
    const old = held !== undefined && this.nowMs - held.storedMs > this.maxAgeMs;
    const expected = old ? undefined : held;
    agree(found?.value, expected?.value, `the answer for ${key}`);
    agree(found?.ageMs, expected && this.nowMs - expected.storedMs, `the age for ${key}`);
    this.entries = this.entries.filter((entry) => entry !== held);
    if (expected !== undefined) this.entries.push(expected);
  }

  drop(key: string, tookMs: number): void {
    const startedMs = this.nowMs - tookMs;
    this.cache.drop(key, startedMs);
    this.entries = this.entries.filter((entry) => entry.key !== key || entry.startedMs > startedMs);
  }

  begin(key: string, call: object): void {
    const held = this.held(key);
    const due = held !== undefined && this.nowMs >= held.refreshMs;
    const expected = !due ? 'none' : held.refresher === undefined ? 'mine' : 'other';
    if (due) held.refresher ??= call;
    agree(this.cache.beginRefresh(key, call, this.nowMs), expected, `a refresh of ${key}`);
  }

  end(key: string, call: object): void {
    this.cache.endRefresh(key, call);
    const held = this.held(key);
    if (held?.refresher === call) held.refresher = undefined;
  }

  update(maxAgeMs: number, jitter: number): void {
    this.maxAgeMs = maxAgeMs;
    this.jitter = jitter;
    this.cache.update({ maxAgeMs, refreshJitter: jitter });
  }

  clear(): void {
    this.cache.clear();
    this.entries = [];
  }

  check(): void {
    agree(this.cache.size, this.entries.length, 'size');
    agree(this.cache.size <= MOST, true, 'bounded');
  }

  private held(key: string): Remembered | undefined {
    return this.entries.find((entry) => entry.key === key);
  }

  private put(key: string, value: number, startedMs: number, storedMs: number): void {
    const refreshMs = this.cache.refreshAtMs(key) ?? NaN;
    const earliest = storedMs + this.maxAgeMs * (1 - this.jitter);
    agree(
      refreshMs >= earliest && refreshMs <= storedMs + this.maxAgeMs,
      true,
      'a refresh within its spread',
    );
    this.entries = this.entries.filter((entry) => entry.key !== key);
    this.entries.push({ key, value, startedMs, storedMs, refreshMs, refresher: undefined });
    if (this.entries.length > MOST) this.entries.shift();
  }
}

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const call = fc.nat(2);
const ms = fc.constantFrom(0, 0, 1, 30, 60, 101);
const command = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('store' as const, 'drop' as const), key, ms }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('find' as const), key }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('restore' as const),
      key,
      ageMs: fc.constantFrom(0, 50, 100, 101, -1, NaN, Infinity),
    }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constantFrom('begin' as const, 'end' as const), key, call }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wait' as const), ms }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('update' as const),
      maxAgeMs: fc.constantFrom(50, 100, 200),
      jitter: fc.constantFrom(0, 0.5, 1),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('clear' as const) }) },
);

test('S1.2, S1.3, S1.5 and S1.11: the cache agrees with a naive list: ages, newest wins, one refresh at a time, bounded', () => {
  checkModel(
    fc.property(commandsOf(command, 40), fc.integer(), (commands, seed) => {
      const pair = new Pair(100, 0.5, seed);
      const calls = [{}, {}, {}];
      for (const [value, step] of commands.entries()) {
        if (step.do === 'store') pair.store(step.key, value, step.ms);
        else if (step.do === 'drop') pair.drop(step.key, step.ms);
        else if (step.do === 'find') pair.find(step.key);
        else if (step.do === 'restore') pair.restore(step.key, value, step.ageMs);
        else if (step.do === 'begin') pair.begin(step.key, calls[step.call]!);
        else if (step.do === 'end') pair.end(step.key, calls[step.call]!);
        else if (step.do === 'wait') pair.nowMs += step.ms;
        else if (step.do === 'update') pair.update(step.maxAgeMs, step.jitter);
        else pair.clear();
        pair.check();
      }
    }),
  );
});
