import { CallerFleet, Dependency } from '@bulwark/demo';
import { eventually, temporaryDirectory } from '@bulwark/testing';
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { run, startServer } from '../e2e/programs.js';

const POLICY = `
apiVersion: bulwark.dev/v1
kind: ResiliencePolicy
metadata: { name: recommendations, namespace: shop }
spec:
  target: { service: recommendations }
  timeout: { total: 10s }
  circuitBreaker:
    scope: Fleet
    trip: { consecutiveFailures: 10 }
    quorum: { instances: 2, share: 20% }
    cooldown: { initial: 1s, max: 1s, factor: 1 }
    probe: { concurrent: 1, successesToClose: 1, timeout: 5s }
`;

const INSTANCES = ['a', 'b', 'c', 'd', 'e', 'f'];

it('when an agent is killed while it holds the probe, another agent gets the next one', async () => {
  using directory = temporaryDirectory('probe');
  const dependency = new Dependency(['recommendations']);
  const port = await dependency.listen(0);
  const url = `http://127.0.0.1:${port}`;
  const server = await startServer(['--store', `file:${directory.path}/store`]);
  const file = `${directory.path}/policy.yaml`;
  writeFileSync(file, POLICY);
  expect((await run(['apply', '-f', file, '--server', `http://${server.http}`])).code).toBe(0);
  const fleet = new CallerFleet();
  for (const instance of INSTANCES) {
    fleet.start({
      controlPlane: server.grpc,
      namespace: 'shop',
      service: 'storefront',
      instances: [instance],
      targets: [{ service: 'recommendations', url: `${url}/svc/recommendations/` }],
      callsPerSecond: 20,
      stateDir: `${directory.path}/agents`,
    });
  }
  const arrivalsSince = (ms: number) => dependency.log('recommendations').filter((one) => one.atMs > ms);
  try {
    await fleet.untilReady();
    await fetch(`${url}/break/recommendations`, { method: 'POST' });
    const sinceMs = dependency.log('recommendations').at(-1)?.atMs ?? 0;
    await eventually(() => openAgents(fleet, sinceMs).size === INSTANCES.length, {
      withinMs: 10_000,
      what: 'all to open',
    });
    // From here on a call to the dependency hangs: whoever holds the probe holds it for its 5 s.
    await fetch(`${url}/break/recommendations?mode=hang`, { method: 'POST' });
    const quietMs = arrivalsSince(sinceMs).at(-1)?.atMs ?? 0;
    const [first] = await eventually(() => nonEmpty(arrivalsSince(quietMs)), {
      withinMs: 10_000,
      what: 'the first probe',
    });
    const killedMs = performance.now();
    fleet.kill(first!.agent);
    const next = await eventually(
      () => nonEmpty(arrivalsSince(first!.atMs).filter((one) => one.agent !== first!.agent)),
      { withinMs: 12_000, what: 'a probe by another agent' },
    );
    console.log(
      `next probe by ${next[0]!.agent} ${(performance.now() - killedMs).toFixed(0)} ms after ${first!.agent} was killed`,
    );
    expect(next.length).toBe(1);
  } finally {
    await fleet.stop();
    await server.process.stop();
    dependency.close();
  }
});

function openAgents(fleet: CallerFleet, sinceMs: number): Set<string> {
  return new Set(
    fleet
      .changesOf('recommendations', sinceMs)
      .filter((one) => one.state === 'open')
      .map((one) => one.agent),
  );
}

function nonEmpty<T>(list: readonly T[]): readonly T[] | false {
  return list.length > 0 ? list : false;
}
