import { setFlagsFromString } from 'node:v8';

/**
 * For a process whose objects live as long as one call. V8 allocates what once survived two collections of the young
 * generation as old from then on; a burst is enough for it to take the objects of calls for such. These, dead, keep
 * alive whatever young objects they point to, so that from then on nearly all of every call survives: collections
 * then took 30 ms and more instead of 1, and up to half of the processor (ADR 6).
 */
export function tuneHeap(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}
