import { expect, test } from 'vitest';
import { RetryBudget } from './retry-budget.js';

test('S4.11: retries never pass the larger of 10 % of first attempts and the floor', () => {
  const budget = new RetryBudget({ ratio: 0.1, minPerSecond: 0, windowMs: 60_000 });
  for (let call = 0; call < 100; call += 1) budget.firstAttempt(call);
  let granted = 0;
  for (let retry = 0; retry < 100; retry += 1) if (budget.reserve(100)) granted += 1;
  expect(granted).toBe(10);
});

test('S4.11: the floor is divided over the live agents of the service', () => {
  const budget = new RetryBudget({ ratio: 0.1, minPerSecond: 10, windowMs: 60_000 });
  budget.setShare(200);
  let granted = 0;
  while (budget.reserve(0)) granted += 1;
  expect(granted).toBe(3);
  budget.setShare(0);
  expect(budget.allowed(0)).toBe(600);
});

test('C119: a retry is counted when it is reserved, so that a burst of 100 cannot pass a budget of 20 %', () => {
  const budget = new RetryBudget({ ratio: 0.2, minPerSecond: 0, windowMs: 10_000 });
  for (let call = 0; call < 100; call += 1) budget.firstAttempt(0);
  const granted = Array.from({ length: 100 }, () => budget.reserve(1)).filter(Boolean).length;
  expect(granted).toBe(20);
});

test('a retry that was not made is given back', () => {
  const budget = new RetryBudget({ ratio: 0, minPerSecond: 1, windowMs: 1000 });
  expect(budget.reserve(0)).toBe(true);
  expect(budget.reserve(0)).toBe(false);
  budget.giveBack(10);
  expect(budget.reserve(10)).toBe(true);
});

test('the window is a window: an hour later old first attempts count no more', () => {
  const budget = new RetryBudget({ ratio: 0.5, minPerSecond: 0, windowMs: 60_000 });
  for (let call = 0; call < 10; call += 1) budget.firstAttempt(0);
  expect(budget.reserve(59_999 - 6000)).toBe(true);
  expect(budget.reserve(3_600_000)).toBe(false);
});

test('a changed ratio keeps the counts', () => {
  const budget = new RetryBudget({ ratio: 0, minPerSecond: 0, windowMs: 60_000 });
  for (let call = 0; call < 10; call += 1) budget.firstAttempt(0);
  budget.update({ ratio: 0.1, minPerSecond: 0, windowMs: 60_000 });
  expect(budget.reserve(1)).toBe(true);
  expect(budget.reserve(1)).toBe(false);
});
