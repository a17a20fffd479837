import { seededRandom } from '@bulwark/testing';
import { expect, test } from 'vitest';
import { LastGoodCache } from './last-good-cache.js';

const settings = { maxAgeMs: 120_000, refreshJitter: 0.1 };
const at = (startedMs: number, nowMs = startedMs) => ({ startedMs, nowMs });

test('S1.2 and S1.3: an answer of exactly 120 s serves, of 121 s does not', () => {
  const cache = new LastGoodCache<string>(settings, Math.random);
  cache.store('k', 'a', at(0));
  expect(cache.find('k', 120_000)).toEqual({ value: 'a', ageMs: 120_000 });
  expect(cache.find('k', 121_000)).toBeUndefined();
});

test('S1.2: the newest success serves; one that began earlier never overwrites it', () => {
  const cache = new LastGoodCache<string>(settings, Math.random);
  cache.store('k', 'newer', at(10, 20));
  cache.store('k', 'older', at(5, 30));
  expect(cache.find('k', 30)?.value).toBe('newer');
  cache.drop('k', 9);
  expect(cache.find('k', 30)?.value).toBe('newer');
});

test('S1.5: an age that is unknown, negative or too great is no cache', () => {
  for (const ageMs of [NaN, -1, Infinity, -Infinity, 120_001]) {
    const cache = new LastGoodCache<string>(settings, Math.random);
    cache.restore('k', 'a', { ageMs, nowMs: 1000 });
    expect(cache.find('k', 1000)).toBeUndefined();
  }
  const cache = new LastGoodCache<string>(settings, Math.random);
  cache.restore('k', 'a', { ageMs: 60_000, nowMs: 1000 });
  expect(cache.find('k', 1000)).toEqual({ value: 'a', ageMs: 60_000 });
  cache.store('future', 'a', at(5000));
  expect(cache.find('future', 4000)).toBeUndefined();
});

test('S1.11: 10,000 entries of one second refresh spread out, before maxAge, no 1 s bin above twice the mean', () => {
  const cache = new LastGoodCache<number>(settings, seededRandom(11), 10_000);
  for (let entry = 0; entry < 10_000; entry += 1) cache.store(`k${entry}`, entry, at(entry / 10));
  const bins = new Map<number, number>();
  for (let entry = 0; entry < 10_000; entry += 1) {
    const refreshMs = cache.refreshAtMs(`k${entry}`) ?? NaN;
    expect(refreshMs).toBeLessThanOrEqual(entry / 10 + 120_000);
    const bin = Math.floor(refreshMs / 1000);
    bins.set(bin, (bins.get(bin) ?? 0) + 1);
  }
  const mean = 10_000 / bins.size;
  expect(bins.size).toBeGreaterThan(10);
  for (const held of bins.values()) expect(held).toBeLessThanOrEqual(2 * mean);
});

test('S1.11: one refresh at a time per entry, and the next one after it ended', () => {
  const cache = new LastGoodCache<string>(settings, () => 0.999);
  const [mine, other] = [{}, {}];
  cache.store('k', 'a', at(0));
  expect(cache.beginRefresh('k', mine, 100_000)).toBe('none');
  expect(cache.beginRefresh('k', mine, 119_000)).toBe('mine');
  expect(cache.beginRefresh('k', other, 119_000)).toBe('other');
  cache.endRefresh('k', other);
  expect(cache.beginRefresh('k', other, 119_000)).toBe('other');
  cache.endRefresh('k', mine);
  expect(cache.beginRefresh('k', other, 119_000)).toBe('mine');
});

test('C147: a maximum age of 31 days is honoured', () => {
  const days = 86_400_000;
  const cache = new LastGoodCache<string>({ maxAgeMs: 31 * days, refreshJitter: 0.1 }, Math.random);
  cache.store('k', 'a', at(0));
  expect(cache.find('k', 30.9 * days)?.ageMs).toBe(30.9 * days);
});
