import type { Judgement } from './call.js';
import type { Meaning } from './classify.js';
import type { LastGoodCache } from './last-good-cache.js';

/** How an attempt ended, as the remembered answer of its call sees it. */
export interface RememberedEnd {
  /** Undefined = nothing is remembered of this call. */
  readonly cacheKey: string | undefined;
  readonly meaning: Meaning;
  readonly judgement: Judgement;
  readonly startedMs: number;
  readonly nowMs: number;
}

/** A full answer is remembered unless its adapter forbids it; a refusal says that what is remembered is no more. */
export function rememberAnswer(
  cache: LastGoodCache<unknown> | undefined,
  { cacheKey, meaning, judgement, startedMs, nowMs }: RememberedEnd,
  value: unknown,
): void {
  if (cache === undefined || cacheKey === undefined) return;
  if (meaning === 'refused') cache.drop(cacheKey, startedMs);
  else if (meaning === 'ok' && judgement.keep !== false) cache.store(cacheKey, value, { startedMs, nowMs });
}
