import { describe, expect, test } from 'vitest';
import { TimeWindow } from './time-window.js';

describe('a window by time', () => {
  test('forgets everything after an idle gap longer than itself', () => {
    const window = new TimeWindow(10_000);
    for (let call = 0; call < 9; call += 1) window.record(true, 500);
    expect(window.bad(3_600_000)).toBe(0);
    expect(window.calls(3_600_000)).toBe(0);
  });

  test('forgets only the buckets that left after a shorter gap', () => {
    const window = new TimeWindow(10_000);
    window.record(true, 0);
    window.record(false, 5000);
    expect(window.calls(9999)).toBe(2);
    expect(window.calls(10_000)).toBe(1);
    expect(window.bad(10_000)).toBe(0);
    expect(window.calls(15_000)).toBe(0);
  });

  test('counts while the clock stands still, and when it goes back', () => {
    const window = new TimeWindow(1000);
    for (let call = 0; call < 1000; call += 1) window.record(call % 2 === 0, 700);
    window.record(true, 100);
    expect(window.calls(700)).toBe(1001);
    expect(window.bad(700)).toBe(501);
  });

  test('takes back the newest, and nothing that is not there', () => {
    const window = new TimeWindow(1000);
    window.record(false, 0);
    window.takeBack(500);
    window.takeBack(500);
    expect(window.calls(500)).toBe(0);
    window.record(false, 600);
    expect(window.calls(600)).toBe(1);
  });
});
