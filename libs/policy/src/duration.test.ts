import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DURATION_PATTERN, formatDuration, parseDuration, suggestDuration } from './duration.js';

describe('durations', () => {
  it.each([
    ['1ms', 1],
    ['800ms', 800],
    ['2s', 2_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
  ])('reads %s as %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    ['30', 'no unit'],
    ['', 'nothing'],
    ['1h30m', 'two units'],
    ['1.5s', 'a fraction'],
    [' 5s', 'a space'],
    ['5 s', 'a space'],
    ['5S', 'another unit'],
    ['-5s', 'a sign'],
    ['+5s', 'a sign'],
    ['1d', 'another unit'],
    ['0s', 'zero'],
    ['05s', 'a leading zero'],
    ['5s\n', 'a line end'],
    ['٣s', 'other digits'],
    ['1e3ms', 'an exponent'],
    ['99999999999ms', 'too many digits'],
  ])('C049: refuses %j, which has %s', (text) => {
    expect(parseDuration(text)).toBeUndefined();
    expect(new RegExp(DURATION_PATTERN).test(text)).toBe(false);
  });

  it('refuses what is no text, and never coerces', () => {
    for (const value of [30, null, undefined, ['2s'], { toString: () => '2s' }, true, 2n]) {
      expect(parseDuration(value)).toBeUndefined();
    }
  });

  it('prints the shortest exact text', () => {
    expect([1, 1_500, 2_000, 90_000, 5_400_000, 7_200_000].map(formatDuration)).toEqual([
      '1ms',
      '1500ms',
      '2s',
      '90s',
      '90m',
      '2h',
    ]);
  });

  it('reads back what it prints', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 31 }), (ms) => parseDuration(formatDuration(ms)) === ms),
    );
  });

  it.each([
    ['1.5s', '1500ms'],
    ['1h30m', '90m'],
    [' 5s', '5s'],
    ['5 S', '5s'],
    ['1d', '24h'],
    ['2 minutes', '2m'],
    ['1h 30m', '90m'],
  ])('suggests for %j what was meant: %s', (text, suggestion) => {
    expect(suggestDuration(text)).toBe(suggestion);
  });

  it.each(['30', '-5s', '0s', 'abc', '0.5ms', '', '5s5', '999999999999h', 30])(
    'suggests nothing for %j',
    (value) => {
      expect(suggestDuration(value)).toBeUndefined();
    },
  );
});
