import type { BenchContext } from '../harness.js';
import { failingCalls, rejections, succeedingCalls } from './calls.js';
import { systemHost } from './guards.js';
import { bytesPerKey, callsOverKeys, loads } from './keys.js';

export const name = 'engine';

/** What the engine costs beside a bare call, a breaker written by hand, and two libraries. */
export async function run(context: BenchContext): Promise<void> {
  try {
    await succeedingCalls(context);
    await failingCalls(context);
    await rejections(context);
    await loads(context);
    await bytesPerKey(context);
    await callsOverKeys(context);
  } finally {
    systemHost.release();
  }
}
