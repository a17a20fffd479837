import { seededRandom } from '@bulwark/testing';
import fc from 'fast-check';
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

test('agrees with a naive least-recently-used list of bounded length and age', () => {
  const command = fc.record({
    do: fc.constantFrom('store', 'find', 'drop', 'wait'),
    key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    ms: fc.constantFrom(0, 1, 30, 60, 101),
  });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 120 }), (commands) => {
      const cache = new LastGoodCache<number>({ maxAgeMs: 100, refreshJitter: 0 }, Math.random, 3);
      let model: { key: string; value: number; storedMs: number }[] = [];
      let nowMs = 0;
      commands.forEach((step, value) => {
        const held = model.find((entry) => entry.key === step.key);
        if (step.do === 'wait') nowMs += step.ms;
        else if (step.do === 'drop') {
          cache.drop(step.key, nowMs);
          model = model.filter((entry) => entry !== held);
        } else if (step.do === 'store') {
          cache.store(step.key, value, { startedMs: nowMs, nowMs });
          model = [
            ...model.filter((entry) => entry !== held),
            { key: step.key, value, storedMs: nowMs },
          ].slice(-3);
        } else {
          const fresh = held !== undefined && nowMs - held.storedMs <= 100 ? held : undefined;
          expect(cache.find(step.key, nowMs)?.value).toBe(fresh?.value);
          model = model.filter((entry) => entry !== held);
          if (fresh !== undefined) model.push(fresh);
        }
        expect(cache.size).toBe(model.length);
      });
    }),
    { numRuns: 400 },
  );
});
