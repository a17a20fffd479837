import { describe, expect, it } from 'vitest';
import { ageText, durationText, shortSpanText } from './age.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('ages', () => {
  it.each([
    [0, '0s'],
    [-5 * SECOND, '0s'],
    [119_999, '119s'],
    [2 * MINUTE, '2m'],
    [2 * MINUTE + 14 * SECOND, '2m14s'],
    [10 * MINUTE, '10m'],
    [179 * MINUTE, '179m'],
    [3 * HOUR + 20 * MINUTE, '3h20m'],
    [8 * HOUR + 59 * MINUTE, '8h'],
    [47 * HOUR, '47h'],
    [2 * DAY + 5 * HOUR, '2d5h'],
    [3 * DAY, '3d'],
    [12 * DAY + 5 * HOUR, '12d'],
    [730 * DAY, '2y'],
    [800 * DAY, '2y70d'],
    [3_000 * DAY, '8y'],
  ])('%i ms is written %s, as kubectl does', (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });

  it('a time that is absent or unreadable is <unknown>, not zero', () => {
    expect(ageText(undefined, 0)).toBe('<unknown>');
    expect(ageText('yesterday', 0)).toBe('<unknown>');
    expect(ageText('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:05:03Z'))).toBe('5m3s');
  });

  it('short spans keep their milliseconds', () => {
    expect([0, 340, 999.6, 1_900, 14_000].map(shortSpanText)).toEqual([
      '0ms',
      '340ms',
      '1000ms',
      '1.9s',
      '14s',
    ]);
  });
});
