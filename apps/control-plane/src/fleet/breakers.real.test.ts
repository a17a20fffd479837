import { createDecider } from '@bulwark/fleet';
import { BreakerState } from '@bulwark/protocol';
import { eventually, temporaryDirectory } from '@bulwark/testing';
import type { AgentObject, BreakerObject } from '@bulwark/views';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiClient, policy } from '../in-process/api-client.js';
import { PlainAgent } from '../in-process/plain-agent.js';
import { startInProcess, type InProcessReplica } from '../in-process/replica.js';

const PATH = '/apis/bulwark.dev/v1/namespaces/shop';
const directory = temporaryDirectory('breakers');
let replica: InProcessReplica;
let api: ApiClient;
let agent: PlainAgent;

beforeAll(async () => {
  replica = await startInProcess({ store: `file:${directory.path}`, createDecider });
  api = new ApiClient(replica.http);
  await eventually(async () => (await api.call('GET', '/readyz')).code === 200);
  await eventually(() => replica.parts.fleet.decides);
  agent = new PlainAgent(replica.grpc);
  await eventually(() => agent.welcome !== undefined);
});

afterAll(async () => {
  agent.close();
  await replica.stop();
  directory.remove();
});

const rule = (name: string): string =>
  replica.parts.catalog.of('shop').get(name)?.compiled?.guard.breaker?.ruleHash ?? '';

async function breakers(): Promise<readonly BreakerObject[]> {
  return (await api.call<{ items: BreakerObject[] }>('GET', `${PATH}/breakers`)).body.items;
}

describe('breakers as people see them', () => {
  it('of scope Instance are shown with the own breakers of the agents, and cannot be forced', async () => {
    const circuitBreaker = { scope: 'Instance', trip: { consecutiveFailures: 5 } };
    await api.call('POST', `${PATH}/resiliencepolicies`, policy('own', { circuitBreaker, mode: 'Shadow' }));
    await eventually(() => rule('own') !== '');
    const key = { namespace: 'shop', policy: 'own', key: 'target' };
    const localState = BreakerState.BREAKER_STATE_OPEN;
    agent.report([{ key, rule: rule('own'), failures: 5, runFailures: 5, localState }]);
    await eventually(async () => (await breakers()).length === 1);
    const [breaker] = await breakers();
    expect(breaker?.spec).toMatchObject({ scope: 'Instance', mode: 'Shadow' });
    expect(breaker?.status).toMatchObject({
      state: 'Closed',
      agents: { total: 1, open: 1, closed: 0 },
      note: 'scope Instance: every agent decides alone',
      transitions: [],
    });
    const force = { state: 'Open', for: '1m', reason: 'test' };
    const refused = await api.call<{ message: string }>(
      'PUT',
      `${PATH}/breakers/${breaker?.metadata.name}/force`,
      force,
    );
    expect([refused.code, refused.body.message]).toEqual([400, expect.stringContaining('scope Instance')]);
    expect(agent.verdicts.size).toBe(0);
  });

  it('of a rule that made other keys are gone', async () => {
    await api.call('PATCH', `${PATH}/resiliencepolicies/own`, {
      spec: { circuitBreaker: { per: ['operation'] } },
    });
    await eventually(async () => (await breakers()).length === 0);
  });

  it('of an enforced policy say so', async () => {
    const spec = { target: { service: 'stock' }, circuitBreaker: { trip: { consecutiveFailures: 10 } } };
    expect((await api.call('POST', `${PATH}/resiliencepolicies`, policy('all', spec))).code).toBe(201);
    await eventually(() => rule('all') !== '');
    agent.report([{ key: { namespace: 'shop', policy: 'all', key: 'target' }, rule: rule('all') }]);
    await eventually(async () => (await breakers()).some(({ spec }) => spec.mode === 'Enforce'));
  });

  it('an agent was seen when it said anything', async () => {
    const seen = async (): Promise<number> => {
      const { body } = await api.call<AgentObject>('GET', `${PATH}/agents/storefront.a`);
      return Date.parse(body.status.lastSeen);
    };
    const before = await seen();
    await eventually(() => Date.now() > before);
    agent.report([]);
    await eventually(async () => (await seen()) > before);
  });
});
