import { createDecider } from '@bulwark/fleet';
import { BreakerState } from '@bulwark/protocol';
import { eventually, startEtcd, type Etcd } from '@bulwark/testing';
import type { BreakerObject } from '@bulwark/views';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ApiClient, policy } from '../in-process/api-client.js';
import { PlainAgent } from '../in-process/plain-agent.js';
import { startInProcess, type InProcessReplica } from '../in-process/replica.js';

let etcd: Etcd;
let replicas: InProcessReplica[] = [];
let agents: PlainAgent[] = [];

beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.stop());
afterEach(async () => {
  for (const agent of agents) agent.close();
  await Promise.all(replicas.map((replica) => replica.stop()));
  replicas = [];
  agents = [];
});

async function start(): Promise<InProcessReplica> {
  const replica = await startInProcess({ store: `etcd:${etcd.endpoint}`, createDecider });
  replicas.push(replica);
  const api = new ApiClient(replica.http);
  await eventually(async () => (await api.call('GET', '/readyz')).code === 200);
  return replica;
}

const PATH = '/apis/bulwark.dev/v1/namespaces/shop';
const key = { namespace: 'shop', policy: 'pay', key: 'target' };
const state = (agent: PlainAgent) => agent.verdicts.get('shop/pay/target')?.state;

/** An agent with counters of its own, which it tells when it is asked or when it failed. */
class CountingAgent extends PlainAgent {
  private readonly counters: { failures: number; successes: number; rejected: number };
  rule = '';

  constructor(address: string, instance: string) {
    const counters = { failures: 0, successes: 0, rejected: 0 };
    super(address, { hello: { instance }, counters: () => this.reportKeys() as never });
    this.counters = counters;
  }

  fail(): void {
    this.counters.failures += 1;
    this.report(this.reportKeys());
  }

  private reportKeys() {
    const { failures } = this.counters;
    return [
      {
        key,
        rule: this.rule,
        ...this.counters,
        runFailures: failures,
        localState: BreakerState.BREAKER_STATE_CLOSED,
      },
    ];
  }
}

describe('the real decider on two replicas', () => {
  it('opens for all at ten failures of two agents, and stays open when its replica goes', async () => {
    const holder = await start();
    await eventually(() => holder.parts.fleet.decides);
    const decidedAtMs = performance.now();
    const other = await start();
    const api = new ApiClient(other.http);
    await new ApiClient(holder.http).call(
      'POST',
      `${PATH}/resiliencepolicies`,
      policy('pay', { circuitBreaker: { trip: { consecutiveFailures: 10 }, cooldown: { initial: '20s' } } }),
    );
    const here = new CountingAgent(holder.grpc, 'here');
    const there = new CountingAgent(other.grpc, 'there');
    agents = [here, there];
    await eventually(() => agents.every(({ inForce }) => inForce.size === 1));
    const rule = holder.parts.catalog.of('shop').get('pay')?.compiled?.guard.breaker?.ruleHash ?? '';
    for (const agent of [here, there]) agent.rule = rule;
    // A decider that has just begun trips nothing before one full report interval.
    await eventually(() => performance.now() - decidedAtMs > 1_100);
    const from = performance.now();
    for (let round = 0; round < 5; round += 1) {
      here.fail();
      there.fail();
    }
    const open = BreakerState.BREAKER_STATE_OPEN;
    await eventually(() => state(here) === open && state(there) === open, { withinMs: 1_000, everyMs: 2 });
    expect(performance.now() - from).toBeLessThan(500);
    const { body } = await api.call<{ items: BreakerObject[] }>('GET', `${PATH}/breakers`);
    expect(body.items[0]?.status).toMatchObject({ state: 'Open', reason: 'consecutive-failures' });
    const before = there.verdicts.get('shop/pay/target')?.version;
    await holder.stop();
    await eventually(() => other.parts.fleet.decides, { withinMs: 3_000 });
    await eventually(
      () => (there.verdicts.get('shop/pay/target')?.version?.token ?? 0) > (before?.token ?? 0),
      { withinMs: 5_000 },
    );
    expect(state(there)).toBe(open);
    const after = await api.call<{ items: BreakerObject[] }>('GET', `${PATH}/breakers`);
    expect(after.body.items[0]?.status.transitions).toHaveLength(1);
  });
});
