import type { BreakerScope } from '@bulwark/resilience';

/**
 * Fleet breakers are decided for the whole fleet; Region and Zone are too, for now, and the view says so; Instance is
 * never decided here.
 */
export function isDecided(scope: BreakerScope): boolean {
  return scope !== 'Instance';
}

export function scopeNote(scope: BreakerScope): string | undefined {
  if (scope === 'Instance') return 'scope Instance: every agent decides alone';
  return scope === 'Fleet' ? undefined : `scope ${scope} is judged over the whole fleet for now`;
}
