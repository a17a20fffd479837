import { FakeHost, guardSettings, seededRandom } from '@bulwark/testing';
import { expect, test } from 'vitest';
import { AdaptiveLimit } from './adaptive-limit.js';
import { Bulkhead, Guard, type Waiter } from './index.js';

/** A dependency of so many workers, each call taking about `serviceMs` of one; calls that find none free wait their turn. */
class Dependency {
  private busy = 0;
  private readonly line: ((nowMs: number) => void)[] = [];

  constructor(
    public workers: number,
    private readonly serviceMs: () => number,
    private readonly clock: Clock,
  ) {}

  take(done: (nowMs: number) => void): void {
    this.line.push(done);
    this.work();
  }

  private work(): void {
    while (this.busy < this.workers) {
      const done = this.line.shift();
      if (done === undefined) return;
      this.busy += 1;
      this.clock.after(this.serviceMs(), (nowMs) => {
        this.busy -= 1;
        done(nowMs);
        this.work();
      });
    }
  }
}

/** Events in order of their time, in buckets of a tenth of a millisecond. */
class Clock {
  nowMs = 0;
  private due = new Map<number, ((nowMs: number) => void)[]>();

  after(ms: number, task: (nowMs: number) => void): void {
    const at = Math.round((this.nowMs + ms) * 10);
    const tasks = this.due.get(at);
    if (tasks === undefined) this.due.set(at, [task]);
    else tasks.push(task);
  }

  /** Nothing happens for so long; what was due is due after it. */
  jump(ms: number): void {
    this.nowMs += ms;
    this.due = new Map([...this.due].map(([at, tasks]) => [at + Math.round(ms * 10), tasks]));
  }

  runUntil(untilMs: number): void {
    for (let at = Math.round(this.nowMs * 10); at <= untilMs * 10; at += 1) {
      this.nowMs = at / 10;
      const tasks = this.due.get(at) ?? [];
      // Those that a task adds for this very time run too.
      for (const task of tasks) task(this.nowMs);
      this.due.delete(at);
    }
  }
}

interface Seen {
  readonly atMs: number;
  readonly tookMs: number;
}

class World {
  readonly clock = new Clock();
  readonly random = seededRandom(7);
  readonly dependency: Dependency;
  readonly bulkhead: Bulkhead;
  readonly seen: Seen[] = [];
  least = Infinity;
  greatest = 0;
  refused = 0;
  serviceMs = 20;
  private perSecond = 0;

  constructor(
    readonly max: number,
    workers: number,
    kind: 'gradient' | 'fixed' = 'gradient',
  ) {
    this.dependency = new Dependency(workers, () => this.serviceMs * (0.7 + 0.6 * this.random()), this.clock);
    this.bulkhead = new Bulkhead({
      maxConcurrent: max,
      maxQueued: 20,
      ...(kind === 'gradient' && { adaptive: kind }),
    });
    this.arrive();
  }

  /** Calls at this rate for so long. */
  run(perSecond: number, ms: number): void {
    this.perSecond = perSecond;
    this.clock.runUntil(this.clock.nowMs + ms);
  }

  /** No calls for so long. */
  idle(ms: number): void {
    this.perSecond = 0;
    this.clock.runUntil(this.clock.nowMs + 1000);
    this.clock.jump(ms);
  }

  /** Median and 99th percentile of what was seen in the last so many milliseconds. */
  durations(lastMs: number): { readonly p50: number; readonly p99: number } {
    const from = this.clock.nowMs - lastMs;
    const sorted = this.seen
      .filter(({ atMs }) => atMs >= from)
      .map(({ tookMs }) => tookMs)
      .sort((a, b) => a - b);
    const at = (part: number): number => sorted[Math.floor(part * (sorted.length - 1))] ?? NaN;
    return { p50: at(0.5), p99: at(0.99) };
  }

  throughput(lastMs: number): number {
    return this.seen.filter(({ atMs }) => atMs >= this.clock.nowMs - lastMs).length / (lastMs / 1000);
  }

  private arrive(): void {
    if (this.perSecond > 0) this.call();
    this.clock.after(this.perSecond > 0 ? 1000 / this.perSecond : 1, () => this.arrive());
  }

  private call(): void {
    const waiter: Waiter = {
      nextWaiter: undefined,
      previousWaiter: undefined,
      queued: false,
      granted: () => this.make(),
    };
    const answer = this.bulkhead.acquire(waiter);
    if (answer === 'taken') this.make();
    if (answer === 'full') this.refused += 1;
    this.least = Math.min(this.least, this.bulkhead.limit);
    this.greatest = Math.max(this.greatest, this.bulkhead.limit);
    if (this.bulkhead.inFlight > this.max) throw new Error('more in flight than the greatest limit');
  }

  private make(): void {
    const beganMs = this.clock.nowMs;
    this.dependency.take((nowMs) => {
      const tookMs = nowMs - beganMs;
      this.seen.push({ atMs: nowMs, tookMs });
      this.bulkhead.sample({ durationMs: tookMs, kind: 'success' }, nowMs);
      this.bulkhead.release();
    });
  }
}

test('S5: a dependency whose capacity halves and recovers: the limit follows, nothing is wasted, durations stay bounded', () => {
  const world = new World(200, 40);
  const look = (): { limit: number; p50: number; perSecond: number } => ({
    limit: world.bulkhead.limit,
    p50: world.durations(2000).p50,
    perSecond: world.throughput(2000),
  });
  // 3,000 calls a second on what can do 2,000, then 1,000.
  world.run(3000, 5000);
  const full = look();
  world.dependency.workers = 20;
  world.run(3000, 5000);
  const half = look();
  world.run(3000, 65_000);
  const stillHalf = look();
  world.dependency.workers = 40;
  world.run(3000, 5000);
  const recovered = look();
  for (const [seen, workers] of [
    [full, 40],
    [half, 20],
    [stillHalf, 20],
    [recovered, 40],
  ] as const) {
    expect(seen.limit).toBeGreaterThan(workers);
    expect(seen.limit).toBeLessThan(2 * workers);
    expect(seen.perSecond).toBeGreaterThan(0.95 * workers * 50);
    // A fixed limit of 200 would make 100 ms of 20, and 200 ms at half capacity.
    expect(seen.p50).toBeLessThan(2 * world.serviceMs);
  }
  expect(world.least).toBeGreaterThanOrEqual(1);
  expect(world.greatest).toBeLessThanOrEqual(200);
});

test('the same without it: the whole limit is in use, and every call waits in the dependency', () => {
  const world = new World(200, 40, 'fixed');
  world.run(3000, 5000);
  expect(world.bulkhead.adapts).toBe(false);
  expect(world.bulkhead.limit).toBe(200);
  expect(world.durations(2000).p50).toBeGreaterThan(90);
});

test('it never passes maxConcurrent, however much the dependency could take', () => {
  const world = new World(12, 1000);
  world.run(3000, 10_000);
  expect(world.greatest).toBe(12);
  expect(world.bulkhead.limit).toBe(12);
});

test('a capacity of one is found too, and at least one call is always let in', () => {
  const world = new World(50, 1);
  world.run(200, 60_000);
  expect(world.bulkhead.limit).toBeLessThanOrEqual(5);
  expect(world.least).toBeGreaterThanOrEqual(1);
  expect(world.throughput(10_000)).toBeGreaterThan(45);
});

test('a limit that is not used does not grow, for however long', () => {
  const world = new World(200, 40);
  world.run(100, 60_000);
  expect(world.refused).toBe(0);
  expect([world.least, world.greatest]).toEqual([10, 10]);
});

test('an idle hour changes nothing, and the first calls after it are not held against anyone', () => {
  const world = new World(200, 40);
  world.run(3000, 5000);
  world.idle(3_600_000);
  const before = world.bulkhead.limit;
  expect(before).toBeGreaterThan(40);
  world.run(100, 100);
  expect(world.bulkhead.limit).toBe(before);
  world.run(3000, 5000);
  expect(world.bulkhead.limit).toBeGreaterThan(40);
  expect(world.durations(2000).p50).toBeLessThan(40);
});

test('a dependency that is slower for good is not taken for a loaded one for ever', () => {
  const world = new World(200, 40);
  world.run(3000, 5000);
  world.serviceMs = 60;
  world.run(1000, 70_000);
  expect(world.bulkhead.limit).toBeGreaterThan(40);
  expect(world.throughput(5000)).toBeGreaterThan(600);
});

/** A limit alone, fed by hand: `durationsMs` in turn, all of the limit in use, one end a millisecond. */
function feed(
  limit: AdaptiveLimit,
  ends: readonly (number | 'failure' | 'ignored')[],
  from: { nowMs: number },
  inUse = limit.limit,
): void {
  for (const end of ends) {
    from.nowMs += 10;
    if (typeof end === 'number') limit.ended({ durationMs: end, kind: 'success' }, inUse, from.nowMs);
    else limit.ended({ durationMs: 5, kind: end }, inUse, from.nowMs);
  }
}

function settled(): { limit: AdaptiveLimit; clock: { nowMs: number } } {
  const limit = new AdaptiveLimit(100);
  const clock = { nowMs: 0 };
  for (let round = 0; round < 10; round += 1) feed(limit, Array<number>(20).fill(20), clock);
  return { limit, clock };
}

test('one lucky fast answer does not lower what counts as unloaded, nor does one slow one', () => {
  const { limit, clock } = settled();
  const before = limit.limit;
  feed(limit, [0.01, ...Array<number>(19).fill(20)], clock);
  expect(limit.limit).toBeGreaterThanOrEqual(before);
  feed(limit, [8000, ...Array<number>(19).fill(20)], clock);
  expect(limit.limit).toBeGreaterThanOrEqual(before);
});

test('failures lower it, to 1 at the least; neutral ends do not count; with successes it grows again', () => {
  const { limit, clock } = settled();
  const before = limit.limit;
  feed(limit, Array<'ignored'>(1000).fill('ignored'), clock);
  expect(limit.limit).toBe(before);
  feed(limit, Array<'failure'>(20).fill('failure'), clock);
  expect(limit.limit).toBeLessThan(before);
  feed(limit, Array<'failure'>(1000).fill('failure'), clock);
  expect(limit.limit).toBe(1);
  for (let round = 0; round < 20; round += 1) feed(limit, Array<number>(20).fill(20), clock);
  expect(limit.limit).toBeGreaterThanOrEqual(before);
});

test('a lower maximum holds at once, a higher one gives room to grow', () => {
  const { limit, clock } = settled();
  limit.setMax(5);
  expect(limit.limit).toBe(5);
  limit.setMax(100);
  expect(limit.limit).toBe(5);
  for (let round = 0; round < 10; round += 1) feed(limit, Array<number>(20).fill(20), clock);
  expect(limit.limit).toBeGreaterThan(10);
});

test('durations of 0, as a coarse clock gives them, do no harm', () => {
  const limit = new AdaptiveLimit(100);
  const clock = { nowMs: 0 };
  for (let round = 0; round < 20; round += 1) feed(limit, Array<number>(20).fill(0), clock);
  expect(limit.limit).toBeGreaterThan(10);
  for (let round = 0; round < 20; round += 1) feed(limit, Array<number>(20).fill(1), clock);
  expect(limit.limit).toBeGreaterThanOrEqual(1);
});

/** Callers that ask a guard again and again, for ten seconds of the dependency's time; the last five are looked at. */
async function askedThrough(
  callers: number,
  answer: (inFlight: number) => { readonly status: number; readonly afterMs: number },
): Promise<{ inFlight: number; statuses: Map<number, number>; detail: string }> {
  const host = new FakeHost();
  const bulkhead = { maxConcurrent: 100, maxQueued: 0, maxWaitMs: 0, adaptive: 'gradient' as const };
  const guard = new Guard({ host, settings: guardSettings({ bulkhead, timeout: { totalMs: 5000 } }) });
  const statuses = new Map<number, number>();
  const seen: number[] = [];
  let [inFlight, detail] = [0, ''];
  const run = async (): Promise<{ status: number }> => {
    const { status, afterMs } = answer(inFlight + 1);
    // What it refuses it does not work on.
    if (status === 200) inFlight += 1;
    await host.sleep(afterMs);
    if (status === 200) inFlight -= 1;
    return { status };
  };
  const caller = async (): Promise<void> => {
    while (host.nowMs() < 10_000) {
      const result = await guard.call({ operation: 'GET /' }, run, {
        judge: ({ status }) => ({ httpStatus: status }),
        judgeError: () => ({}),
      });
      if (result.kind === 'rejected') {
        detail = result.detail;
        await host.sleep(5);
      } else if (host.nowMs() > 5000 && 'value' in result) {
        seen.push(inFlight + 1);
        statuses.set(result.value?.status ?? 0, (statuses.get(result.value?.status ?? 0) ?? 0) + 1);
      }
    }
  };
  for (let each = 0; each < callers; each += 1) void caller();
  await host.advance(11_000);
  return { inFlight: seen.reduce((sum, one) => sum + one, 0) / seen.length, statuses, detail };
}

test('through a guard: 60 callers on what can do 8 at once do not make a queue of 52 there', async () => {
  const { inFlight, detail } = await askedThrough(60, (held) => ({
    status: 200,
    afterMs: 20 * Math.max(1, held / 8),
  }));
  expect(inFlight).toBeGreaterThan(6);
  expect(inFlight).toBeLessThan(20);
  expect(detail).toMatch(/^in flight \d+ of \d+ \(adaptive, at most 100\), waiting 0 of 0$/);
});

test('through a guard: a dependency that says 429 above 8 is soon asked for little more', async () => {
  const { inFlight, statuses } = await askedThrough(60, (held) =>
    held > 8 ? { status: 429, afterMs: 1 } : { status: 200, afterMs: 20 },
  );
  expect(inFlight).toBeLessThanOrEqual(9);
  const [well = 0, refused = 0] = [statuses.get(200), statuses.get(429)];
  // All it can do in five seconds is 2,000. A fixed limit has 52 callers of 60 ask every millisecond, and be refused.
  expect(well).toBeGreaterThan(1600);
  expect(refused).toBeLessThan(10_000);
});
