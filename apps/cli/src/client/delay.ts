import { setTimeout as sleep } from 'node:timers/promises';
import { Interrupted } from '../command-error.js';

/** @throws Interrupted as soon as the signal is */
export async function delay(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch {
    throw new Interrupted();
  }
}
