import { expect, it } from 'vitest';
import type { StoredVerdict } from '@bulwark/fleet';
import { parseVerdict } from './stored-verdict.js';

const transition = {
  unixMs: 1,
  from: 'closed',
  to: 'open',
  reason: 'failure-rate',
  message: 'm',
  epoch: 3,
  share: 0,
} as const;
const verdict: StoredVerdict = {
  key: { namespace: 'shop', policy: 'pay', key: 'target' },
  version: { era: 1, token: 7, epoch: 3 },
  state: 'half-open',
  share: 0,
  step: -1,
  permit: { agent: 'shop/web/a', incarnation: 'i', calls: 1, timeoutMs: 1_000 },
  forced: { state: 'open', remainingMs: 1_000, by: 'ann', reason: 'drill' },
  reason: 'probe-permit',
  message: 'm',
  cooldownMs: 5_000,
  trips: 1,
  sinceUnixMs: 1,
  writtenUnixMs: 1,
  transitions: [transition],
};
const without = { permit: undefined, forced: undefined };

it('a verdict is read as it was written', () => {
  expect(parseVerdict(JSON.stringify(verdict))).toEqual(verdict);
  expect(parseVerdict(JSON.stringify({ ...verdict, ...without }))).toEqual({ ...verdict, ...without });
});

it.each([
  ['no JSON', '{'],
  ['no map', '[]'],
  ['no name', JSON.stringify({ ...verdict, key: { namespace: 'shop', policy: 'pay', key: '' } })],
  ['a version as text', JSON.stringify({ ...verdict, version: { era: '1', token: 7, epoch: 3 } })],
  ['another state', JSON.stringify({ ...verdict, state: 'ajar' })],
  ['a share above one', JSON.stringify({ ...verdict, share: 10 })],
  ['a time that is none', JSON.stringify({ ...verdict, sinceUnixMs: 9e15 })],
  ['no transitions', JSON.stringify({ ...verdict, transitions: undefined })],
  [
    'a transition without a time',
    JSON.stringify({ ...verdict, transitions: [{ ...transition, unixMs: null }] }),
  ],
  ['a permit for nobody', JSON.stringify({ ...verdict, permit: { calls: 1, timeoutMs: 1 } })],
  ['another forced state', JSON.stringify({ ...verdict, forced: { ...verdict.forced, state: 'half' } })],
])('a record with %s is left out', (_, value) => {
  expect(parseVerdict(value)).toBeUndefined();
});
