import { connect, type Bulwark } from '@bulwark/agent';
import { eventually, startEtcd, temporaryDirectory } from '@bulwark/testing';
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { run, startServer } from './programs.js';

const POLICY = `
apiVersion: bulwark.dev/v1
kind: ResiliencePolicy
metadata: { name: fraud, namespace: shop }
spec:
  target: { service: fraud-api }
  timeout: { total: 1s }
`;

it('a policy applied at one server is in force at an agent of another server on the same etcd within one second', async () => {
  await using etcd = await startEtcd();
  using directory = temporaryDirectory('two-servers');
  const file = `${directory.path}/policy.yaml`;
  writeFileSync(file, POLICY);
  const first = await startServer(['--store', `etcd:${etcd.endpoint}`, '--id', 'one']);
  const second = await startServer(['--store', `etcd:${etcd.endpoint}`, '--id', 'two']);
  const agent = await connect({
    namespace: 'shop',
    service: 'storefront',
    instance: 'a',
    controlPlane: second.grpc,
  });
  try {
    await eventually(() => agent.state().controlPlane.state === 'connected', {
      withinMs: 5_000,
      what: 'the agent to connect',
    });
    const applied = await run(['apply', '-f', file, '--server', `http://${first.http}`]);
    expect(applied.stderr + applied.stdout).toContain('resiliencepolicy.bulwark.dev/fraud created');
    await eventually(() => generationAt(agent) === 1, { withinMs: 1_000, what: 'generation 1 at the agent' });

    const waysMs: number[] = [];
    for (let generation = 2; generation <= 21; generation += 1) {
      const startedMs = performance.now();
      const changed = await fetch(
        `http://${first.http}/apis/bulwark.dev/v1/namespaces/shop/resiliencepolicies/fraud`,
        {
          method: 'PATCH',
          headers: { 'content-type': 'application/merge-patch+json' },
          body: JSON.stringify({ spec: { timeout: { total: `${generation}s` } } }),
        },
      );
      expect(changed.status).toBe(200);
      await eventually(() => generationAt(agent) === generation, { withinMs: 1_000, everyMs: 1 });
      waysMs.push(performance.now() - startedMs);
    }
    waysMs.sort((a, b) => a - b);
    console.log(
      `from the request at one server to force at the other's agent: median ${waysMs[10]?.toFixed(0)} ms, worst ${waysMs[19]?.toFixed(0)} ms of 20`,
    );
  } finally {
    await agent.close();
    await second.process.stop();
    await first.process.stop();
  }
});

function generationAt(agent: Bulwark): number | undefined {
  return agent.state().policies.find((one) => one.policy === 'shop/fraud')?.generation;
}
