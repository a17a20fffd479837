/** A policy with every section, as the documentation shows it; kept valid by a test. */
export const EXAMPLE_POLICY = `apiVersion: bulwark.dev/v1
kind: ResiliencePolicy
metadata:
  name: shop-recommendations
  namespace: shop
  annotations: { bulwark.dev/owner: team-reco, bulwark.dev/runbook: "https://runbooks.example/reco" }
spec:
  target:  { service: recommendations, operations: ["GET /v1/recs"] }
  callers: { matchLabels: { app: storefront } }
  contract: optional
  mode: Enforce
  timeout: { attempt: 800ms, total: 2s }
  retry:
    maxAttempts: 3
    backoff: { base: 100ms, max: 2s, jitter: full }
    retryOn: { statuses: [429, 502, 503, 504], grpc: [UNAVAILABLE], failures: [connect, reset, timeout] }
    methods: [GET, HEAD]
    budget: { ratio: 10%, minPerSecond: 10, window: 60s }
  circuitBreaker:
    scope: Fleet
    per: [target]
    trip:
      failureRate: { ratio: 50%, minimumCalls: 20, window: 10s }
      slowRate:    { slowerThan: 500ms, ratio: 80%, minimumCalls: 20, window: 10s }
      consecutiveFailures: 10
    quorum: { instances: 2, share: 20% }
    failures: { statuses: ["5xx"], grpc: [UNAVAILABLE, DEADLINE_EXCEEDED, INTERNAL], timeouts: true }
    cooldown: { initial: 5s, max: 60s, factor: 2 }
    probe: { concurrent: 1, successesToClose: 1, timeout: 1s }
    recovery: { steps: [10%, 25%, 50%], stepFor: 5s }
  bulkhead: { maxConcurrent: 10, maxQueued: 20, maxWait: 300ms, adaptive: none }
  fallback:
    - lastGood: { maxAge: 120s, refreshJitter: 10%, varyBy: [header:accept-language] }
    - simplified: { whenQueued: 10, operation: "GET /v1/recs/popular" }
    - static:   { status: 200, body: '{"items": []}' }
  rollout: { strategy: standard }
`;
