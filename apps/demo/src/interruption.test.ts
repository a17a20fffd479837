import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Interruption } from './interruption.js';

it('signals that come together are one wish to end, and a later one ends at once', async () => {
  let atOnce = 0;
  const interruption = new Interruption(() => (atOnce += 1));
  expect(interruption.signal.aborted).toBe(false);
  for (let count = 0; count < 3; count += 1) interruption.wish();
  expect(interruption.signal.aborted).toBe(true);
  expect(atOnce).toBe(0);
  await sleep(600);
  interruption.wish();
  expect(atOnce).toBe(1);
});
