/**
 * What an absent field means. Stored objects keep what was typed; these are filled in when a policy is compiled, and
 * the checks across fields use them too. An absent section is no section: no `retry` = one attempt, no
 * `circuitBreaker` = no breaker, no `bulkhead` = no limit, no `fallback` = failures reach the caller.
 */
export const DEFAULTS = {
  namespace: 'default',
  mode: 'Enforce',
  contract: 'optional',
  timeout: {
    /** `attempt` has none: an attempt may take what is left of the total. */
    total: '10s',
  },
  retry: {
    maxAttempts: 3,
    backoff: { base: '100ms', max: '2s', jitter: 'full' },
    /** Each list of `retryOn` has its own default; `[]` = none. */
    statuses: [429, 502, 503, 504],
    grpc: ['UNAVAILABLE'],
    failures: ['connect', 'reset', 'timeout'],
    /** The idempotent methods of RFC 9110 §9.2.2. */
    methods: ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'],
    /** Also when `budget` is absent as a whole: retries without a budget are what turns a fault into an overload. */
    budget: { ratio: '10%', minPerSecond: 10, window: '60s' },
  },
  circuitBreaker: {
    scope: 'Fleet',
    per: ['target'],
    /** At most what a `window: {calls}` can hold. */
    minimumCalls: 20,
    window: '10s',
    quorum: { instances: 2, share: '20%' },
    cooldown: { initial: '5s', max: '60s', factor: 2 },
    /** `timeout`: the attempt's timeout, else the total, but at most this. `maxCalls` absent = unbounded. */
    probe: { concurrent: 1, successesToClose: 1, timeout: '1s' },
    recovery: { steps: ['10%', '25%', '50%'], stepFor: '5s' },
  },
  /** What is the dependency's failure; used with and without a breaker. */
  failures: { statuses: ['5xx'], grpc: ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'INTERNAL'], timeouts: true },
  bulkhead: {
    /** 0 = no queue: excess is rejected at once. */
    maxQueued: 0,
    /** `maxWait` has none: with a queue, a call may wait until its deadline. */
    adaptive: 'none',
  },
  fallback: {
    refreshJitter: '10%',
    /** `contentType`: application/json when the body is JSON, else plain text. `whenQueued` absent = never by queue. */
    staticStatus: 200,
  },
} as const;
