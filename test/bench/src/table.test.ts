import { expect, it } from 'vitest';
import { measured } from './harness.js';
import { jsonLine, plain, table } from './table.js';

const bare = { name: 'bare', rounds: [100, 110, 105] };
const lines = [
  measured('engine', { name: 'bare', unit: 'ns', rounds: bare.rounds }, false),
  measured(
    'engine',
    {
      name: 'guarded',
      unit: 'ns',
      rounds: [310, 330, 325],
      base: bare,
      reach: { kind: 'at-most', figure: 4 },
    },
    false,
  ),
  measured(
    'engine',
    {
      name: 'p50',
      unit: 'ms',
      rounds: [340],
      reach: { kind: 'near', figure: 203, from: 150, to: 300 },
    },
    false,
  ),
];

it('writes one line of JSON with the fields of the contract, in their order, and no others', () => {
  expect(jsonLine(lines[1]!)).toBe(
    '{"suite":"engine","name":"guarded","value":325,"unit":"ns","ratioTo":"bare","ratio":3.09524,"reach":4,"ok":true,"runs":3}',
  );
});

it('aligns the table, shows the spread of several rounds, and says ok or MISSED where something is asked', () => {
  expect(table({ title: 'One call', lines })).toBe(
    [
      'One call',
      '           median  lowest .. highest       ratio  asked for',
      '  bare     105 ns         100 .. 110',
      '  guarded  325 ns         310 .. 330  3.1 × bare  ≤ 4 ×                ok',
      '  p50      340 ms                                 203 ms (150 to 300)  MISSED',
    ].join('\n'),
  );
});

it('does not repeat the title of a section in its rows', () => {
  const figure = { name: 'One call: cost', unit: 'ns', rounds: [7] };
  const text = table({ title: 'One call', lines: [measured('engine', figure, false)] });
  expect(text).toBe(['One call', '        median', '  cost    7 ns'].join('\n'));
});

it('prints three digits that matter, and whole numbers in full', () => {
  expect([0, 1234567, 12.345, 1.2345, 0.012345, NaN].map(plain)).toEqual([
    '0',
    '1234567',
    '12.3',
    '1.23',
    '0.0123',
    'none',
  ]);
});
