import { describe, expect, test } from 'vitest';
import { MessageAge } from './message-age.js';

describe('the age of messages on a stream', () => {
  test('is what a message waited beyond the quickest one, whatever the two clocks say', () => {
    const age = new MessageAge();
    expect(age.lateMs(1_000_000, 503)).toBe(0);
    expect(age.lateMs(1_000_100, 601)).toBe(0);
    expect(age.lateMs(1_000_200, 731)).toBe(30);
    expect(age.lateMs(1_000_300, 30_701)).toBe(29_900);
  });

  test('is 0 where the sender said nothing, and on a new stream', () => {
    const age = new MessageAge();
    expect(age.lateMs(undefined, 5)).toBe(0);
    expect(age.lateMs(10, 15)).toBe(0);
    age.reset();
    expect(age.lateMs(10, 9_000)).toBe(0);
  });

  test('forgets old comparisons, so that clocks that drift apart do not make every message look late', () => {
    const age = new MessageAge();
    let late = 0;
    // A drift of 100 parts in a million over a day, one message a minute.
    for (let minute = 0; minute < 24 * 60; minute += 1) {
      const senderMs = minute * 60_000;
      late = Math.max(late, age.lateMs(senderMs, senderMs * 1.0001 + 7));
    }
    expect(late).toBeGreaterThan(0);
    expect(late).toBeLessThan(70);
  });
});
