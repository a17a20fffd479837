import { expect, test } from 'vitest';
import { FakeHost } from './fake-host.js';
import { seededRandom } from './seeded-random.js';

test('time moves only when told, timers run in order at their own time, and promises settle between them', async () => {
  const host = new FakeHost({ startMs: 100 });
  const log: string[] = [];
  host.after(20, () => log.push(`b ${host.nowMs()}`));
  host.after(10, () => {
    log.push(`a ${host.nowMs()}`);
    void Promise.resolve().then(() => host.after(5, () => log.push(`nested ${host.nowMs()}`)));
  });
  host.after(20, () => log.push('c'));
  const cancel = host.after(15, () => log.push('never'));
  cancel();
  cancel();
  await host.advance(9);
  expect([log, host.nowMs(), host.pending]).toEqual([[], 109, 3]);
  await host.advance(100);
  expect(log).toEqual(['a 110', 'nested 115', 'b 120', 'c']);
  expect([host.nowMs(), host.pending]).toEqual([209, 0]);
});

test('a skipped clock runs what became due late, never early', async () => {
  const host = new FakeHost();
  let ranAtMs = NaN;
  host.after(10, () => {
    ranAtMs = host.nowMs();
  });
  host.skip(1000);
  expect(ranAtMs).toBeNaN();
  await host.advance(0);
  expect(ranAtMs).toBe(1000);
});

test('the same seed gives the same numbers, uniform in [0, 1)', () => {
  const [one, same, other] = [seededRandom(7), seededRandom(7), seededRandom(8)];
  const numbers = Array.from({ length: 10_000 }, one);
  expect(Array.from({ length: 10_000 }, same)).toEqual(numbers);
  expect(other()).not.toBe(numbers[0]);
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...numbers)).toBeLessThan(1);
  expect(Math.abs(numbers.reduce((sum, number) => sum + number, 0) / 10_000 - 0.5)).toBeLessThan(0.01);
});
