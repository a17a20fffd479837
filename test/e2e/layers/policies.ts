import { writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { run, startServer, type Server } from '../programs.js';

/** Three attempts at each layer: 27 calls of the leaf, if nobody knew of the others. */
const retrying = (service: string, rest = '') => `
apiVersion: bulwark.dev/v1
kind: ResiliencePolicy
metadata: { name: ${service}, namespace: shop }
spec:
  target: { service: ${service} }
  timeout: { total: 10s }
  retry: { maxAttempts: 3, backoff: { base: 10ms, max: 20ms, jitter: none }, methods: [GET, POST] }
${rest}`;

/** Trips by what one caller alone sees, so that nothing but the meaning of outcomes protects it. */
const BREAKER = `  circuitBreaker:
    scope: Fleet
    trip: { consecutiveFailures: 10, failureRate: { ratio: 50%, minimumCalls: 20, window: 10s } }
    quorum: { instances: 1, share: 1% }
`;

/** "prices" is the leaf under another name, with a breaker. */
const POLICIES = ['front', 'middle', 'leaf']
  .map((service) => retrying(service))
  .concat(retrying('prices', BREAKER))
  .join('---\n');

export const POLICY_COUNT = 4;

/** A control plane that has the policies of the layers. */
export async function startServerWithPolicies(directory: string): Promise<Server> {
  const server = await startServer(['--store', `file:${directory}/store`]);
  const file = `${directory}/policies.yaml`;
  writeFileSync(file, POLICIES);
  const applied = await run(['apply', '-f', file, '--server', `http://${server.http}`]);
  expect(applied.code, applied.stderr).toBe(0);
  return server;
}

/** The states of the breakers that the control plane knows, as a person sees them. */
async function fleetBreakers(server: Server): Promise<string[]> {
  const at = ['--server', `http://${server.http}`];
  const shown = await run(['get', 'breakers', '-n', 'shop', '-o', 'json', ...at]);
  expect(shown.code, shown.stderr).toBe(0);
  const { items } = JSON.parse(shown.stdout) as { items: { status: { state: string } }[] };
  return items.map(({ status }) => status.state);
}

/** Looks for longer than the agents' last reports take, a second or so: the one breaker is closed all the time. */
export async function expectFleetStaysClosed(server: Server): Promise<void> {
  const untilMs = performance.now() + 2_000;
  while (performance.now() < untilMs) expect(await fleetBreakers(server)).toEqual(['Closed']);
}
