import { describe, expect, test } from 'vitest';
import { Bulkhead, type Waiter } from './bulkhead.js';

class Call implements Waiter {
  nextWaiter: Waiter | undefined;
  previousWaiter: Waiter | undefined;
  queued = false;
  running = false;

  constructor(
    readonly name: number,
    private readonly onGranted: (call: Call) => void = () => undefined,
  ) {}

  granted(): void {
    this.running = true;
    this.onGranted(this);
  }
}

describe('bulkhead', () => {
  test('C133: of three in the queue the middle one leaves; first and third run, depth 0', () => {
    const bulkhead = new Bulkhead({ maxConcurrent: 1, maxQueued: 3 });
    const calls = [0, 1, 2, 3].map((name) => new Call(name));
    expect(calls.map((call) => bulkhead.acquire(call))).toEqual(['taken', 'queued', 'queued', 'queued']);
    expect(bulkhead.cancel(calls[2]!)).toBe(true);
    expect(bulkhead.cancel(calls[2]!)).toBe(false);
    bulkhead.release();
    bulkhead.release();
    expect(calls.map((call) => call.running)).toEqual([false, true, false, true]);
    expect(bulkhead.waiting).toBe(0);
    bulkhead.release();
    expect(bulkhead.inFlight).toBe(0);
  });

  test('C135: a newcomer in the tick of a release never goes before the queue, 1,000 times', () => {
    const bulkhead = new Bulkhead({ maxConcurrent: 1, maxQueued: 1000 });
    const order: number[] = [];
    bulkhead.acquire(new Call(-1));
    bulkhead.acquire(new Call(0, (call) => order.push(call.name)));
    for (let round = 1; round <= 1000; round += 1) {
      bulkhead.release();
      const newcomer = new Call(round, (call) => order.push(call.name));
      expect(bulkhead.acquire(newcomer)).toBe('queued');
      expect(bulkhead.inFlight).toBe(1);
    }
    expect(order).toEqual(Array.from({ length: 1000 }, (_, index) => index));
  });

  test('C137: without a queue the excess is refused at once', () => {
    const bulkhead = new Bulkhead({ maxConcurrent: 5, maxQueued: 0 });
    const answers = Array.from({ length: 10 }, (_, name) => bulkhead.acquire(new Call(name)));
    expect(answers.filter((answer) => answer === 'taken')).toHaveLength(5);
    expect(answers.filter((answer) => answer === 'full')).toHaveLength(5);
  });

  test('a queue of calls that end as they begin does not grow the stack, and a call made inside waits its turn', () => {
    const bulkhead = new Bulkhead({ maxConcurrent: 1, maxQueued: 100_000 });
    const order: number[] = [];
    bulkhead.acquire(new Call(-1));
    const ends = (call: Call): void => {
      order.push(call.name);
      if (call.name === 0) bulkhead.acquire(new Call(50_000, ends));
      bulkhead.release();
    };
    for (let name = 0; name < 50_000; name += 1) bulkhead.acquire(new Call(name, ends));
    bulkhead.release();
    expect(order).toEqual(Array.from({ length: 50_001 }, (_, index) => index));
    expect(bulkhead.inFlight).toBe(0);
  });

  test('a newcomer in the very step in which the head gives its slot up again goes behind the queue', () => {
    const bulkhead = new Bulkhead({ maxConcurrent: 1, maxQueued: 10 });
    const order: number[] = [];
    bulkhead.acquire(new Call(0));
    bulkhead.acquire(
      new Call(1, () => {
        order.push(1);
        bulkhead.release();
        expect(bulkhead.acquire(new Call(3, () => order.push(3)))).toBe('queued');
      }),
    );
    bulkhead.acquire(new Call(2, () => order.push(2)));
    bulkhead.release();
    bulkhead.release();
    expect(order).toEqual([1, 2, 3]);
  });

  test('more room is used at once; less room lets those inside finish; places in the queue stay', () => {
    const bulkhead = new Bulkhead({ maxConcurrent: 1, maxQueued: 5 });
    const calls = [0, 1, 2, 3, 4].map((name) => new Call(name));
    for (const call of calls) bulkhead.acquire(call);
    bulkhead.update({ maxConcurrent: 3, maxQueued: 0 });
    expect(calls.map((call) => call.running)).toEqual([false, true, true, false, false]);
    expect(bulkhead.waiting).toBe(2);
    bulkhead.update({ maxConcurrent: 1, maxQueued: 0 });
    bulkhead.release();
    bulkhead.release();
    expect(calls[3]!.running).toBe(false);
    bulkhead.release();
    expect(calls[3]!.running).toBe(true);
    expect(bulkhead.inFlight).toBe(1);
  });

  test('a slot released twice is a defect, and says so', () => {
    expect(() => new Bulkhead({ maxConcurrent: 1, maxQueued: 0 }).release()).toThrow(/twice/);
  });
});
