import { agree, checkModel, commandsOf } from '@bulwark/testing';
import fc from 'fast-check';
import { test } from 'vitest';
import { RetryBudget } from './index.js';

/** The obvious budget: two lists of when things were, counted anew each time. */
class ListBudget {
  firsts: number[] = [];
  retries: number[] = [];
  liveAgents = 1;

  constructor(public settings: { ratio: number; minPerSecond: number; windowMs: number }) {}

  /** The window's tenths leave whole. */
  private held(times: readonly number[], nowMs: number): number[] {
    const bucketMs = this.settings.windowMs / 10;
    return times.filter((time) => Math.floor(time / bucketMs) > Math.floor(nowMs / bucketMs) - 10);
  }

  used(nowMs: number): number {
    return this.held(this.retries, nowMs).length;
  }

  allowed(nowMs: number): number {
    const { ratio, minPerSecond, windowMs } = this.settings;
    return Math.max(
      ratio * this.held(this.firsts, nowMs).length,
      (minPerSecond * windowMs) / 1000 / this.liveAgents,
    );
  }

  reserve(nowMs: number): boolean {
    const may = this.used(nowMs) + 1 <= this.allowed(nowMs) + 1e-9;
    if (may) this.retries.push(nowMs);
    return may;
  }

  giveBack(nowMs: number): void {
    this.retries = this.held(this.retries, nowMs);
    this.retries.pop();
  }

  update(settings: ListBudget['settings']): void {
    if (settings.windowMs !== this.settings.windowMs) [this.firsts, this.retries] = [[], []];
    this.settings = settings;
  }
}

const settings = fc.record({
  ratio: fc.constantFrom(0, 0.07, 0.1, 0.2, 1),
  minPerSecond: fc.constantFrom(0, 0.5, 1, 3),
  windowMs: fc.constantFrom(1000, 10_000),
});
const command = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('first' as const), times: fc.nat(12) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('reserve' as const), times: fc.nat(4) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('give-back' as const), times: fc.nat(3) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(1, 99, 500, 1000, 9500, 20_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('share' as const), agents: fc.constantFrom(0, 1, 3, NaN) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('update' as const), settings }) },
);

test('S4.11: a retry budget agrees with two naive lists whatever the traffic, and is never passed', () => {
  checkModel(
    fc.property(settings, commandsOf(command, 24), (initial, commands) => {
      const budget = new RetryBudget(initial);
      const model = new ListBudget(initial);
      let nowMs = 0;
      for (const step of commands) {
        if (step.do === 'wait') nowMs += step.ms;
        else if (step.do === 'share') {
          budget.setShare(step.agents);
          model.liveAgents = step.agents >= 1 ? step.agents : 1;
        } else if (step.do === 'update') {
          budget.update(step.settings);
          model.update(step.settings);
        } else {
          for (let time = 0; time < step.times; time += 1) act(step.do, budget, model, nowMs);
        }
        agree(budget.used(nowMs), model.used(nowMs), 'used');
        agree(budget.allowed(nowMs), model.allowed(nowMs), 'allowed');
      }
    }),
  );
});

function act(
  what: 'first' | 'reserve' | 'give-back',
  budget: RetryBudget,
  model: ListBudget,
  nowMs: number,
): void {
  if (what === 'reserve') {
    agree(budget.reserve(nowMs), model.reserve(nowMs), 'reserve');
  } else if (what === 'first') {
    budget.firstAttempt(nowMs);
    model.firsts.push(nowMs);
  } else {
    budget.giveBack(nowMs);
    model.giveBack(nowMs);
  }
}
