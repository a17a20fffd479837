import { FakeHost } from '@bulwark/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SharedTimer } from './shared-timer.js';
import { TimerWheel, WheelEntry } from './timer-wheel.js';

class Wait extends WheelEntry {
  constructor(private readonly task: (nowMs: number) => void) {
    super();
  }

  due(nowMs: number): void {
    this.task(nowMs);
  }
}

test('a wheel runs what is due, never early, in order, and names the earliest of the rest', () => {
  const command = fc.oneof(
    fc.record({ do: fc.constant('start' as const), delayMs: fc.double({ min: 0, max: 9000, noNaN: true }) }),
    fc.record({ do: fc.constant('cancel' as const), pick: fc.nat() }),
    fc.record({ do: fc.constant('advance' as const), ms: fc.double({ min: 0, max: 4000, noNaN: true }) }),
  );
  fc.assert(
    fc.property(
      fc.array(command, { maxLength: 120 }),
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      (commands, startMs) => {
        const wheel = new TimerWheel(16, 32);
        const waiting = new Map<WheelEntry, number>();
        const ran: number[] = [];
        let nowMs = startMs;
        for (const step of commands) {
          if (step.do === 'start') {
            const dueMs = nowMs + step.delayMs;
            const wait = new Wait(() => {
              ran.push(dueMs);
              waiting.delete(wait);
            });
            waiting.set(wait, dueMs);
            wheel.schedule(wait, dueMs);
          } else if (step.do === 'cancel') {
            const wait = [...waiting.keys()][step.pick % Math.max(1, waiting.size)];
            if (wait === undefined) continue;
            waiting.delete(wait);
            wheel.cancel(wait);
          } else {
            nowMs += step.ms;
            const expected = [...waiting.values()].filter((dueMs) => dueMs <= nowMs).sort((a, b) => a - b);
            ran.length = 0;
            wheel.advance(nowMs);
            expect(ran).toEqual(expected);
          }
          expect(wheel.size).toBe(waiting.size);
          expect(wheel.nextDueMs()).toBe(Math.min(Infinity, ...waiting.values()));
        }
      },
    ),
    { numRuns: 400 },
  );
});

test('waits for the same time end in the order they began', () => {
  const wheel = new TimerWheel();
  const ran: number[] = [];
  for (const number of [1, 2, 3]) wheel.schedule(new Wait(() => ran.push(number)), 50);
  wheel.advance(50);
  expect(ran).toEqual([1, 2, 3]);
});

test('a stream of waits that end early sets one timer of the host, not one each', async () => {
  const host = new FakeHost();
  let timers = 0;
  const timer = new SharedTimer({ ...host, after: (delayMs, task) => (timers++, host.after(delayMs, task)) });
  for (let call = 0; call < 1000; call += 1) {
    const wait = new Wait(() => expect.unreachable());
    timer.start(wait, host.nowMs() + 800);
    await host.advance(1);
    timer.cancel(wait);
  }
  expect(timers).toBeLessThanOrEqual(3);
  expect(host.pending).toBeLessThanOrEqual(1);
  timer.close();
  expect(host.pending).toBe(0);
});

test('an earlier wait moves the timer forward, and each ends at its own time', async () => {
  const host = new FakeHost({ startMs: 123_456.5 });
  const timer = new SharedTimer(host);
  const ran: number[] = [];
  for (const delayMs of [5000, 20, 700, 20.25]) {
    timer.start(new Wait((nowMs) => ran.push(nowMs - 123_456.5)), host.nowMs() + delayMs);
  }
  await host.advance(10_000);
  expect(ran).toEqual([20, 20.25, 700, 5000]);
  expect(host.pending).toBe(0);
});
