/** Complete, validated settings of one guard: what a policy compiles to. Times in milliseconds, ratios 0..1. */
export interface GuardSettings {
  /** "namespace/name". */
  readonly policy: string;
  readonly generation: number;
  readonly mode: 'enforce' | 'shadow';
  /** `required`: no fallback of any kind, the caller's own function included. Absent = optional. */
  readonly contract?: 'optional' | 'required';
  readonly timeout: TimeoutSettings;
  /** Absent = one attempt. */
  readonly retry?: RetrySettings;
  /** Absent = no breaker. */
  readonly breaker?: BreakerSettings;
  /** Absent = no limit. */
  readonly bulkhead?: BulkheadSettings;
  /** Tried in order; empty = failures reach the caller. */
  readonly fallbacks: readonly FallbackSettings[];
  readonly failures: FailureSettings;
}

export interface TimeoutSettings {
  /** Of one attempt; absent = what is left of the total. Less than `totalMs`. */
  readonly attemptMs?: number;
  /** Of the logical call: execution, waiting and retries. */
  readonly totalMs: number;
}

/** What the classifier calls the dependency's failure. */
export interface FailureSettings {
  /** HTTP statuses, expanded: 500..599 for "5xx". */
  readonly statuses: ReadonlySet<number>;
  /** gRPC status names. */
  readonly grpc: ReadonlySet<string>;
  /** Whether an attempt that used up its full policy timeout is a failure. */
  readonly timeouts: boolean;
}

export interface RetrySettings {
  /** The first attempt included: 1..10. */
  readonly maxAttempts: number;
  readonly backoff: { readonly baseMs: number; readonly maxMs: number; readonly jitter: 'full' | 'none' };
  readonly statuses: ReadonlySet<number>;
  readonly grpc: ReadonlySet<string>;
  readonly failures: ReadonlySet<'connect' | 'reset' | 'timeout'>;
  /** Upper-case HTTP methods that may be retried without an idempotency key. */
  readonly methods: ReadonlySet<string>;
  /** Absent = bounded by maxAttempts only. */
  readonly budget?: RetryBudgetSettings;
}

export interface RetryBudgetSettings {
  readonly ratio: number;
  /** Floor for the whole service; each process has its part of it. */
  readonly minPerSecond: number;
  readonly windowMs: number;
}

export type BreakerScope = 'Fleet' | 'Region' | 'Zone' | 'Instance';

export interface BreakerSettings {
  readonly scope: BreakerScope;
  /** What breaker keys are made of, in order: "target", "operation", "caller.LABEL", "call.ATTRIBUTE". */
  readonly per: readonly string[];
  readonly trip: TripSettings;
  readonly quorum: { readonly instances: number; readonly share: number };
  readonly cooldown: { readonly initialMs: number; readonly maxMs: number; readonly factor: number };
  readonly probe: {
    readonly concurrent: number;
    readonly successesToClose: number;
    readonly timeoutMs: number;
    /** Bounds one half-open episode; absent = unbounded. At least successesToClose. */
    readonly maxCalls?: number;
  };
  /** Shares 0..1, rising; empty = the probe's success closes. */
  readonly recovery: { readonly steps: readonly number[]; readonly stepForMs: number };
  /**
   * Hash of what decides about trips (trip, scope, per, failures, quorum): counts belong to it and survive
   * a new generation that leaves it unchanged.
   */
  readonly ruleHash: string;
}

/** Any rule that holds trips. At least one is present. */
export interface TripSettings {
  readonly failureRate?: RateRule;
  readonly slowRate?: RateRule & { readonly slowerThanMs: number };
  readonly consecutiveFailures?: number;
}

export interface RateRule {
  /** Trips at this ratio or above: 0 < ratio ≤ 1. */
  readonly ratio: number;
  readonly minimumCalls: number;
  /** By calls for scope Instance only. */
  readonly window: { readonly ms: number } | { readonly calls: number };
}

export interface BulkheadSettings {
  readonly maxConcurrent: number;
  /** 0 = no queue: excess is rejected at once. */
  readonly maxQueued: number;
  readonly maxWaitMs: number;
  /**
   * `gradient`: the limit follows what the dependency can take, from 1 to `maxConcurrent`; see adaptive-limit.ts.
   * Absent = it is `maxConcurrent`.
   */
  readonly adaptive?: 'gradient';
}

export type FallbackSettings =
  | {
      readonly kind: 'last-good';
      readonly maxAgeMs: number;
      /** 0..1: part of maxAge over which refreshes are spread, always before maxAge. */
      readonly refreshJitter: number;
      /** "header:NAME", lower case. */
      readonly varyBy: readonly string[];
    }
  | { readonly kind: 'simplified'; readonly whenQueued: number; readonly operation: string }
  | { readonly kind: 'static'; readonly status: number; readonly body: string; readonly contentType: string };
