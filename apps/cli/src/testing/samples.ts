import type { AgentObject, BreakerObject } from '@bulwark/views';

/** A policy as people write it. */
export function policyYaml(name: string, spec = '  timeout: { total: 1s }'): string {
  return `apiVersion: bulwark.dev/v1
kind: ResiliencePolicy
metadata: { name: ${name}, namespace: shop }
spec:
  target: { service: ${name} }
${spec}
`;
}

export function sampleBreaker(name: string, status: Partial<BreakerObject['status']> = {}): BreakerObject {
  return {
    apiVersion: 'bulwark.dev/v1',
    kind: 'Breaker',
    metadata: { name, namespace: 'shop', labels: { team: 'reco' } },
    spec: {
      policy: name.split('.')[0] ?? '',
      key: 'target',
      scope: 'Fleet',
      target: 'recs',
      threshold: '50%/10s',
    },
    status: {
      state: 'Closed',
      era: 1,
      token: 7,
      epoch: 3,
      since: '2026-03-01T11:57:46Z',
      reason: 'healthy',
      message: 'all steps held',
      agents: { total: 12, open: 0, halfOpen: 0, closed: 12, synced: 12 },
      calls: { perSecond: 412, failureRatio: 0.004, rejectedPerSecond: 0 },
      transitions: [],
      ...status,
    },
  };
}

export function sampleAgent(instance: string, status: Partial<AgentObject['status']> = {}): AgentObject {
  return {
    apiVersion: 'bulwark.dev/v1',
    kind: 'Agent',
    metadata: { name: `storefront.${instance}`, namespace: 'shop', labels: { app: 'storefront' } },
    spec: { service: 'storefront', instance, incarnation: 'i1' },
    status: {
      phase: 'Synced',
      replica: 'one',
      version: '0.1.0',
      connectedAt: '2026-03-01T11:00:00Z',
      lastSeen: '2026-03-01T11:59:59Z',
      acked: '1.42',
      sent: '1.42',
      lagMs: 0,
      policies: [],
      ...status,
    },
  };
}
