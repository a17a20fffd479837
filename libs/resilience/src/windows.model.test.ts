import { agree, checkModel, commandsOf } from '@bulwark/testing';
import fc from 'fast-check';
import { test } from 'vitest';
import { CountWindow } from './count-window.js';
import { TimeWindow } from './time-window.js';

/** The obvious window: every outcome that ever was, counted anew each time it is asked. */
class ListWindow {
  private outcomes: { readonly bucket: number; readonly bad: boolean }[] = [];

  constructor(
    private readonly bucketMs: number,
    private readonly buckets: number,
  ) {}

  record(bad: boolean, nowMs: number): void {
    this.outcomes.push({ bucket: Math.floor(nowMs / this.bucketMs), bad });
  }

  held(nowMs: number): { readonly bad: boolean }[] {
    const oldest = Math.floor(nowMs / this.bucketMs) - this.buckets + 1;
    this.outcomes = this.outcomes.filter(({ bucket }) => bucket >= oldest);
    return this.outcomes;
  }

  takeBack(nowMs: number): void {
    this.held(nowMs);
    const newest = this.outcomes.findLastIndex(({ bad }) => !bad);
    if (newest >= 0) this.outcomes.splice(newest, 1);
  }
}

/** Gaps as parts of the window: none, within a bucket, some buckets, all but one bucket, exactly all, more, an hour's worth. */
const gap = fc.oneof(
  fc.constantFrom(0, 0, 0, 0.01, 0.5, 0.9, 0.999, 1, 1.5, 100, 1e6),
  fc.double({ min: 0, max: 1.2, noNaN: true }),
);
const step = fc.record({
  do: fc.constantFrom('good', 'good', 'good', 'bad', 'bad', 'bad', 'take-back', 'look'),
  gap,
  times: fc.constantFrom(1, 1, 1, 5),
});

test('a window by time agrees with a naive list under any gaps, a still clock and outcomes taken back', () => {
  checkModel(
    fc.property(
      commandsOf(step, 24),
      fc.integer({ min: 1, max: 12 }),
      fc.constantFrom(1, 100, 10_000),
      fc.double({ min: 0, max: 1e9, noNaN: true }),
      (steps, buckets, lengthMs, startMs) => {
        const window = new TimeWindow(lengthMs, buckets);
        const model = new ListWindow(lengthMs / buckets, buckets);
        let nowMs = startMs;
        for (const { do: what, gap: part, times } of steps) {
          nowMs += part * lengthMs;
          for (let time = 0; time < times; time += 1) {
            if (what === 'take-back') {
              window.takeBack(nowMs);
              model.takeBack(nowMs);
            } else if (what !== 'look') {
              window.record(what === 'bad', nowMs);
              model.record(what === 'bad', nowMs);
            }
          }
          const held = model.held(nowMs);
          agree(window.calls(nowMs), held.length, 'calls');
          agree(window.bad(nowMs), held.filter(({ bad }) => bad).length, 'bad');
        }
      },
    ),
  );
});

test('a window by count agrees with the tail of a naive list', () => {
  checkModel(
    fc.property(commandsOf(fc.boolean(), 60), fc.integer({ min: 1, max: 20 }), (outcomes, length) => {
      const window = new CountWindow(length);
      let held: boolean[] = [];
      for (const [index, bad] of outcomes.entries()) {
        // Time means nothing to it, wherever it goes.
        window.record(bad, index % 3);
        held = [...held, bad].slice(-length);
        agree(window.calls(0), held.length, 'calls');
        agree(window.bad(1e9), held.filter(Boolean).length, 'bad');
      }
    }),
  );
});
