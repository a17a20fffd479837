import { connect } from '@bulwark/agent';
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
    // The command's own start is not part of the way from one server to the other: time runs from its end.
    const applied = await run(['apply', '-f', file, '--server', `http://${first.http}`]);
    expect(applied.stderr + applied.stdout).toContain('resiliencepolicy.bulwark.dev/fraud created');
    const startedMs = performance.now();
    await eventually(() => agent.state().policies.some((one) => one.policy === 'shop/fraud'), {
      withinMs: 1_000,
    });
    console.log(
      `in force at the other server's agent ${(performance.now() - startedMs).toFixed(0)} ms after apply ended`,
    );
  } finally {
    await agent.close();
    await second.process.stop();
    await first.process.stop();
  }
});
