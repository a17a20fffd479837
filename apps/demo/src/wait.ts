import { setTimeout as sleep } from 'node:timers/promises';
import { machineMs } from './clock.js';

const LOOK_EVERY_MS = 50;

/** Lets the story go on for a stated time, or until `interrupted`; never rejects. */
export async function pause(ms: number, interrupted?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, interrupted === undefined ? {} : { signal: interrupted }).catch(() => undefined);
}

/** Looks until `look` answers something; an error after `withinMs` says what was awaited. */
export async function eventually<T>(
  what: string,
  withinMs: number,
  look: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const endMs = machineMs() + withinMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    if (machineMs() >= endMs) throw new Error(`not within ${withinMs / 1_000} s: ${what}`);
    await sleep(LOOK_EVERY_MS);
  }
}
