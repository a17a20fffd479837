import type { FallbackSettings } from '@bulwark/resilience';
import { msOf, ratioOf } from './compile-values.js';
import { DEFAULTS } from './defaults.js';
import type { PolicySpec } from './schema/policy.js';

type Entry = NonNullable<PolicySpec['fallback']>[number];

export function compileFallbacks(entries: readonly Entry[]): FallbackSettings[] {
  return entries.map(compileEntry);
}

function compileEntry(entry: Entry): FallbackSettings {
  if (entry.lastGood !== undefined) {
    return {
      kind: 'last-good',
      maxAgeMs: msOf(entry.lastGood.maxAge),
      refreshJitter: ratioOf(entry.lastGood.refreshJitter ?? DEFAULTS.fallback.refreshJitter),
      varyBy: (entry.lastGood.varyBy ?? []).map((header) => header.toLowerCase()),
    };
  }
  if (entry.simplified !== undefined) {
    return {
      kind: 'simplified',
      whenQueued: entry.simplified.whenQueued ?? Infinity,
      operation: entry.simplified.operation,
    };
  }
  const { body = '', status, contentType } = entry.static ?? {};
  return {
    kind: 'static',
    status: status ?? DEFAULTS.fallback.staticStatus,
    body,
    contentType: contentType ?? (isJson(body) ? 'application/json' : 'text/plain; charset=utf-8'),
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
