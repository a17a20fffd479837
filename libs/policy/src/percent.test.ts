import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPercent, parsePercent, suggestPercent } from './percent.js';

describe('percentages', () => {
  it.each([
    ['0%', 0],
    ['10%', 0.1],
    ['12.5%', 0.125],
    ['33.3%', 0.333],
    ['0.001%', 0.00001],
    ['100%', 1],
  ])('reads %s as exactly %d', (text, ratio) => {
    expect(parsePercent(text)).toBe(ratio);
  });

  it.each([
    '12.5',
    '20',
    '.5%',
    '5.%',
    '-1%',
    '+1%',
    '1 %',
    ' 1%',
    '01%',
    '1e1%',
    '1.2345%',
    '%',
    '',
    '1000%',
  ])('C045: refuses %j', (text) => {
    expect(parsePercent(text)).toBeUndefined();
  });

  it('C045: refuses numbers: 0.2 and 20 are each read in two ways', () => {
    for (const value of [-1, 0, 100, 101, 0.2, 20, null, undefined])
      expect(parsePercent(value)).toBeUndefined();
  });

  it('reads back what it prints, to three decimals', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100_000 }), (thousandths) => {
        const text = formatPercent(thousandths / 100_000);
        expect(parsePercent(text)).toBeCloseTo(thousandths / 100_000, 12);
      }),
    );
  });

  it('suggests the text without the space, and nothing where the unit is not known', () => {
    expect(suggestPercent('20 %')).toBe('20%');
    expect(suggestPercent('20')).toBeUndefined();
    expect(suggestPercent('20%')).toBeUndefined();
  });
});
