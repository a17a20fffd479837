/** The fleet's decision as the engine sees it. Ordered by (era, token, epoch); older ones are dropped. */
export interface FleetVerdict {
  readonly version: VerdictVersion;
  readonly state: 'closed' | 'open' | 'half-open' | 'recovering';
  /** Admitted share while recovering, 0..1. */
  readonly share: number;
  /** Calls this agent may make as the fleet's probe; 0 = it holds no permit. */
  readonly permitCalls: number;
  /** Time to finish the probe, from receipt. */
  readonly permitMs: number;
  /** Time to live from receipt. */
  readonly ttlMs: number;
  readonly forced: 'open' | 'closed' | undefined;
  /** Life of `forced` from receipt; it outlives `ttlMs`. */
  readonly forcedMs: number;
  readonly reason: string;
  /** For Retry-After while open; 0 = unknown. */
  readonly cooldownMs: number;
}

export interface VerdictVersion {
  readonly era: number;
  readonly token: number;
  readonly epoch: number;
}

/** Negative when `a` is older than `b`, 0 when equal, positive when newer. */
export function compareVersions(a: VerdictVersion, b: VerdictVersion): number {
  return a.era - b.era || a.token - b.token || a.epoch - b.epoch;
}
