import { describe, expect, it } from 'vitest';
import { seededRandom } from '@bulwark/testing';
import { interleave, measured, median, percentile, shuffled } from './harness.js';

describe('the benchmark harness', () => {
  it('asks every peer once a round, in an order that changes, and keeps what the warm-up gave to itself', async () => {
    const order: string[] = [];
    const peer = (name: string) => (round: number) => {
      order.push(name);
      return round;
    };
    const values = await interleave(
      { a: peer('a'), b: peer('b'), c: peer('c') },
      { rounds: 9, warmUps: 2, seed: 3 },
    );
    expect(values).toEqual({
      a: [0, 1, 2, 3, 4, 5, 6, 7, 8],
      b: [0, 1, 2, 3, 4, 5, 6, 7, 8],
      c: [0, 1, 2, 3, 4, 5, 6, 7, 8],
    });
    const rounds = Array.from({ length: 11 }, (_, n) => order.slice(3 * n, 3 * n + 3).join(''));
    for (const round of rounds) expect([...round].sort()).toEqual(['a', 'b', 'c']);
    expect(new Set(rounds).size).toBeGreaterThan(1);
  });

  it('lets no peer run while another is measured', async () => {
    let running = 0;
    const peer = async () => {
      running += 1;
      await new Promise((resolve) => setImmediate(resolve));
      expect(running).toBe(1);
      running -= 1;
      return 1;
    };
    await interleave({ a: peer, b: peer }, { rounds: 3 });
  });

  it('puts every element in every place equally often when it shuffles', () => {
    const random = seededRandom(5);
    const first = Array.from({ length: 3000 }, () => shuffled([0, 1, 2], random)[0]);
    for (const value of [0, 1, 2]) {
      const times = first.filter((one) => one === value).length;
      expect(times).toBeGreaterThan(900);
      expect(times).toBeLessThan(1100);
    }
  });

  it('takes the middle as the median and the nearest rank as a percentile', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([])).toBeNaN();
    const hundred = Array.from({ length: 100 }, (_, n) => n + 1);
    expect(percentile(hundred, 0.99)).toBe(99);
    expect(percentile(hundred, 0.5)).toBe(50);
    expect(percentile([7], 0.99)).toBe(7);
    expect(percentile([], 0.5)).toBeNaN();
  });
});

describe('a figure', () => {
  const base = { name: 'bare', rounds: [100, 200, 400] };

  it('has the median of the ratios of the same round, which a slow round cannot move', () => {
    const figure = { name: 'guarded', unit: 'ns', rounds: [300, 600, 1200], base };
    expect(measured('engine', figure, false)).toMatchObject({
      suite: 'engine',
      name: 'guarded',
      value: 600,
      ratioTo: 'bare',
      ratio: 3,
      reach: null,
      ok: true,
      runs: 3,
    });
  });

  it('is judged by its ratio where it has a base, else by its value', () => {
    const reach = { kind: 'at-most', figure: 4 } as const;
    const rounds = [390, 780, 1560];
    const of = (more: object) => measured('engine', { name: 'x', unit: 'ns', rounds, ...more }, false);
    expect(of({ base, reach })).toMatchObject({ reach: 4, ok: true });
    expect(of({ reach })).toMatchObject({ reach: 4, ok: false });
    expect(of({ reach: { kind: 'at-least', figure: 780 } })).toMatchObject({ ok: true });
    expect(of({ reach: { kind: 'near', figure: 700, from: 600, to: 779 } })).toMatchObject({
      reach: 700,
      ok: false,
    });
    expect(of({ reach: { kind: 'near', figure: 700, from: 600, to: 780 } })).toMatchObject({ ok: true });
  });

  it('is not judged in a quick run unless it holds on any machine', () => {
    const reach = { kind: 'at-most', figure: 0 } as const;
    const figure = { name: 'errors', unit: '%', rounds: [2], reach };
    expect(measured('degrade', figure, true)).toMatchObject({ reach: null, ok: true });
    expect(measured('degrade', { ...figure, exact: true }, true)).toMatchObject({ reach: 0, ok: false });
  });

  it('that could not be measured is a miss, and one without rounds or with a base of other rounds an error', () => {
    const reach = { kind: 'at-most', figure: 1 } as const;
    expect(measured('x', { name: 'y', unit: '', rounds: [NaN], reach }, false).ok).toBe(false);
    expect(() => measured('x', { name: 'y', unit: '', rounds: [] }, false)).toThrow('no round');
    expect(() => measured('x', { name: 'y', unit: '', rounds: [1, 2, 3, 4], base }, false)).toThrow(
      'bare has no value in round 4',
    );
  });
});
