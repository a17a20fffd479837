import { connect, silentLogger, type Bulwark } from '@bulwark/agent';
import { Dependency } from '@bulwark/demo';
import { eventually, temporaryDirectory } from '@bulwark/testing';
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { getJson, run, startServer, type Server } from '../e2e/programs.js';

const POLICIES = ['recommendations', 'payments']
  .map(
    (name) => `
apiVersion: bulwark.dev/v1
kind: ResiliencePolicy
metadata: { name: ${name}, namespace: shop }
spec:
  target: { service: ${name} }
  timeout: { total: 2s }
  circuitBreaker:
    scope: Fleet
    trip:
      consecutiveFailures: 10
      failureRate: { ratio: 50%, minimumCalls: 20, window: 10s }
    quorum: { instances: 2, share: 20% }
    cooldown: { initial: 60s, max: 60s, factor: 1 }
`,
  )
  .join('---\n');

const AGENTS = 8;

interface Breakers {
  readonly items: readonly {
    readonly spec: { readonly policy: string };
    readonly status: { readonly state: string; readonly transitions: readonly unknown[] };
  }[];
}

/** Calls at a steady rate until stopped, and keeps what was thrown. */
function callSteadily(
  agent: Bulwark,
  service: string,
  url: string,
): { stop: () => void; errors: unknown[]; calls: () => number } {
  const errors: unknown[] = [];
  let calls = 0;
  const timer = setInterval(() => {
    calls += 1;
    agent
      .call(service, { operation: 'GET /', method: 'GET' }, async () => {
        const response = await fetch(url);
        await response.arrayBuffer();
        if (!response.ok)
          throw Object.assign(new Error(`status ${response.status}`), { status: response.status });
        return response;
      })
      .catch((error: unknown) => errors.push(error));
  }, 50);
  return { stop: () => clearInterval(timer), errors, calls: () => calls };
}

it('a killed control plane fails no call, and after its restart all agents are back and no breaker has moved', async () => {
  using directory = temporaryDirectory('killed');
  const store = `file:${directory.path}/store`;
  const dependency = new Dependency(['recommendations', 'payments']);
  const url = `http://127.0.0.1:${await dependency.listen(0)}`;
  let server: Server = await startServer(['--store', store]);
  const { http, grpc } = server;
  const file = `${directory.path}/policies.yaml`;
  writeFileSync(file, POLICIES);
  expect((await run(['apply', '-f', file, '--server', `http://${http}`])).code).toBe(0);
  const agents = await Promise.all(
    Array.from({ length: AGENTS }, (_, n) =>
      connect({
        namespace: 'shop',
        service: 'storefront',
        instance: `a${n}`,
        controlPlane: grpc,
        logger: silentLogger,
      }),
    ),
  );
  const payments = agents.map((agent) => callSteadily(agent, 'payments', `${url}/svc/payments/`));
  const recommendations = agents.map((agent) =>
    callSteadily(agent, 'recommendations', `${url}/svc/recommendations/`),
  );
  const breakers = async () => {
    const { items } = await getJson<Breakers>(`http://${http}/apis/bulwark.dev/v1/namespaces/shop/breakers`);
    return Object.fromEntries(
      items.map((one) => [one.spec.policy, `${one.status.state}/${one.status.transitions.length}`]),
    );
  };
  try {
    await eventually(() => agents.every((agent) => agent.state().policies.length === 2), { withinMs: 5_000 });
    await fetch(`${url}/break/recommendations`, { method: 'POST' });
    await eventually(async () => (await breakers())['recommendations'] === 'Open/1', { withinMs: 10_000 });

    await server.process.kill();
    const callsBefore = payments.reduce((sum, one) => sum + one.calls(), 0);
    await eventually(() => agents.every((agent) => agent.state().controlPlane.state !== 'connected'), {
      withinMs: 10_000,
    });
    await eventually(() => payments.reduce((sum, one) => sum + one.calls(), 0) > callsBefore + 100, {
      withinMs: 10_000,
    });

    server = await startServer(['--store', store, '--http', http, '--grpc', grpc]);
    await eventually(() => agents.every((agent) => agent.state().controlPlane.state === 'connected'), {
      withinMs: 15_000,
      what: 'all agents to be back',
    });
    // Two report intervals: whatever the restart could wrongly cause would have been caused.
    const looksUntil = performance.now() + 3_000;
    await eventually(
      async () => {
        expect((await breakers())['recommendations']).toMatch(/^Open\//);
        expect((await breakers())['payments'] ?? 'Closed/0').toBe('Closed/0');
        return performance.now() > looksUntil;
      },
      { withinMs: 6_000 },
    );
    const rejected = recommendations.flatMap((one) => one.errors).length;
    expect(rejected).toBeGreaterThan(0);
    expect(payments.flatMap((one) => one.errors)).toEqual([]);
    console.log(
      `${payments.reduce((sum, one) => sum + one.calls(), 0)} calls to the healthy dependency, none failed`,
    );
  } finally {
    for (const one of [...payments, ...recommendations]) one.stop();
    await Promise.all(agents.map((agent) => agent.close()));
    await server.process.stop();
    dependency.close();
  }
});
