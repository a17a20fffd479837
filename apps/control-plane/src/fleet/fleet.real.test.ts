import type { StoredVerdict } from '@bulwark/fleet';
import { BreakerState, ForcedState, type Verdict } from '@bulwark/protocol';
import { openStore, type Store } from '@bulwark/store';
import { eventually, startEtcd, temporaryDirectory, type Etcd } from '@bulwark/testing';
import type { BreakerObject } from '@bulwark/views';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ApiClient, policy, type WatchFrame } from '../in-process/api-client.js';
import { PlainAgent, type PlainAgentOptions } from '../in-process/plain-agent.js';
import { startInProcess, type InProcessReplica } from '../in-process/replica.js';
import { ScriptedDecider } from '../in-process/scripted-decider.js';
import { breakerName, verdictKey } from './breaker-name.js';

let etcd: Etcd;
let round = 0;
let namespace: string;
let replicas: InProcessReplica[];
let agents: PlainAgent[];

beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(async () => {
  await etcd.stop();
});

beforeEach(() => {
  namespace = `team-${(round += 1)}`;
  replicas = [];
  agents = [];
});

afterEach(async () => {
  for (const agent of agents) {
    agent.close();
    expect(agent.violations).toEqual([]);
  }
  await Promise.all(replicas.map((replica) => replica.stop()));
});

interface Started extends InProcessReplica {
  readonly api: ApiClient;
  readonly deciders: ScriptedDecider[];
}

async function start(store = `etcd:${etcd.endpoint}`, args: string[] = []): Promise<Started> {
  const deciders: ScriptedDecider[] = [];
  const replica = await startInProcess({
    store,
    args,
    createDecider: (options) => {
      const decider = new ScriptedDecider(options);
      deciders.push(decider);
      return decider;
    },
  });
  replicas.push(replica);
  const api = new ApiClient(replica.http);
  await eventually(async () => (await api.call('GET', '/readyz')).code === 200);
  return { ...replica, api, deciders };
}

async function startTwo(): Promise<{ holder: Started; other: Started }> {
  const holder = await start();
  await eventually(() => holder.parts.fleet.decides, { withinMs: 10_000 });
  return { holder, other: await start() };
}

function agent(replica: InProcessReplica, options: PlainAgentOptions = {}): PlainAgent {
  const made = new PlainAgent(replica.grpc, { ...options, hello: { namespace, ...options.hello } });
  agents.push(made);
  return made;
}

const breaking = { circuitBreaker: { trip: { consecutiveFailures: 10 } } };
const policies = () => `/apis/bulwark.dev/v1/namespaces/${namespace}/resiliencepolicies`;
const breakers = () => `/apis/bulwark.dev/v1/namespaces/${namespace}/breakers`;
const key = () => ({ namespace, policy: 'pay', key: 'target' });
const failing = () => ({ key: key(), rule: 'r', failures: 3, runFailures: 3 });
const verdictOf = (one: PlainAgent): Verdict | undefined => one.verdicts.get(`${namespace}/pay/target`);
const isOpen = (one: PlainAgent) => verdictOf(one)?.state === BreakerState.BREAKER_STATE_OPEN;

async function connected(replica: InProcessReplica, instance: string): Promise<PlainAgent> {
  const made = agent(replica, { hello: { instance } });
  await eventually(() => made.inForce.size === 1);
  return made;
}

describe('two replicas on one etcd', () => {
  it('bring a policy applied at one to an agent of the other within a second', async () => {
    const { holder, other } = await startTwo();
    const one = agent(other);
    await eventually(() => one.updates.length === 1);
    const from = performance.now();
    expect((await holder.api.call('POST', policies(), policy('pay'))).code).toBe(201);
    await eventually(() => one.inForce.size === 1, { withinMs: 1_000, everyMs: 2 });
    expect(performance.now() - from).toBeLessThan(1_000);
    await eventually(async () => {
      const { body } = await holder.api.call('GET', `${policies()}/pay`);
      return (body.status as { agents: { running: number } }).agents.running === 1;
    });
  });

  it('let a list at one be watched at the other', async () => {
    const { holder, other } = await startTwo();
    await holder.api.call('POST', policies(), policy('pay'));
    const { body } = await other.api.call<{ metadata: { resourceVersion: string } }>('GET', policies());
    const frames: WatchFrame[] = [];
    const stop = AbortSignal.timeout(5_000);
    const path = `${policies()}?watch=1&timeoutSeconds=2&resourceVersion=${body.metadata.resourceVersion}`;
    const watching = (async () => {
      for await (const frame of holder.api.watch(path, stop)) frames.push(frame);
    })();
    await other.api.call('POST', policies(), policy('second'));
    await watching;
    expect(frames.filter(({ type }) => type === 'ADDED').map(({ object }) => object.metadata.name)).toContain(
      'second',
    );
  });

  it('show the agents and breakers of both at each', async () => {
    const { holder, other } = await startTwo();
    await holder.api.call('POST', policies(), policy('pay', breaking));
    const far = await connected(other, 'far');
    await connected(holder, 'near');
    const names = async ({ api }: Started) => {
      const path = `/apis/bulwark.dev/v1/namespaces/${namespace}/agents`;
      const { body } = await api.call<{ items: { metadata: { name: string } }[] }>('GET', path);
      return body.items.map(({ metadata }) => metadata.name);
    };
    expect(await names(holder)).toEqual(['storefront.far', 'storefront.near']);
    expect(await names(other)).toEqual(['storefront.far', 'storefront.near']);
    far.report([failing()]);
    await eventually(() => isOpen(far));
    for (const { api } of [holder, other]) {
      const { body } = await api.call<{ items: BreakerObject[] }>('GET', breakers());
      expect(body.items.map(({ metadata, status }) => [metadata.name, status.state])).toEqual([
        [breakerName(key()), 'Open'],
      ]);
    }
  });
});

describe('a verdict', () => {
  it('is stored before it is sent, reaches the agents of both replicas, and those that come later', async () => {
    const { holder, other } = await startTwo();
    await holder.api.call('POST', policies(), policy('pay', breaking));
    const near = await connected(holder, 'near');
    const far = await connected(other, 'far');
    await eventually(() => holder.deciders[0]?.agents.size === 2);
    far.report([failing()]);
    await eventually(() => isOpen(near) && isOpen(far), { withinMs: 1_000, everyMs: 2 });
    const stored = await withStore(async (store) => store.get(verdictKey(key())));
    expect(JSON.parse(stored?.value ?? '{}')).toMatchObject({
      state: 'open',
      version: verdictOf(near)?.version,
    });
    expect(verdictOf(near)?.version?.token).toBeGreaterThan(0);
    expect(near.polls.at(-1)?.pollId).toBe(7);
    expect(far.polls.at(-1)?.pollId).toBe(7);
    const later = await connected(other, 'later');
    await eventually(() => isOpen(later));
    expect(verdictOf(later)?.ttlMs).toBeLessThanOrEqual(30_000);
    const unconcerned = agent(holder, { hello: { namespace: 'another-team' } });
    await eventually(() => unconcerned.updates.length === 1);
    expect(unconcerned.verdicts.size).toBe(0);
  });

  it('lives on when its decider leaves: another replica goes on with it under a higher token', async () => {
    const { holder, other } = await startTwo();
    await holder.api.call('POST', policies(), policy('pay', breaking));
    const far = await connected(other, 'far');
    await eventually(() => holder.deciders[0]?.agents.size === 1);
    far.report([failing()]);
    await eventually(() => isOpen(far));
    const token = verdictOf(far)?.version?.token ?? 0;
    await holder.stop();
    await eventually(() => other.parts.fleet.decides, { withinMs: 2_000 });
    expect(isOpen(far)).toBe(true);
    await eventually(() => other.deciders[0]?.agents.size === 1);
    far.report([{ key: key(), rule: 'r', successes: 1 }]);
    await eventually(() => verdictOf(far)?.state === BreakerState.BREAKER_STATE_CLOSED);
    expect(verdictOf(far)?.version?.token).toBeGreaterThan(token);
  });

  it('of a decider that lost its claim is neither written nor sent', async () => {
    const { holder, other } = await startTwo();
    await holder.api.call('POST', policies(), policy('pay', breaking));
    const near = await connected(holder, 'near');
    await withStore(async (store) => {
      await store.commit({ conditions: [], writes: [{ kind: 'delete', key: '/bulwark/claims/all' }] });
    });
    await eventually(() => other.parts.fleet.decides, { withinMs: 3_000 });
    near.report([failing()]);
    await eventually(() => !holder.parts.fleet.decides || isOpen(near), { withinMs: 8_000 });
    const stored = await withStore(async (store) => store.get(verdictKey(key())));
    const { version } = JSON.parse(stored?.value ?? '{"version":{"token":0}}') as Pick<
      StoredVerdict,
      'version'
    >;
    const claim = await withStore(async (store) => store.get('/bulwark/claims/all'));
    expect([0, claim?.createRevision]).toContain(version.token);
  });

  it('goes when its policy goes', async () => {
    const holder = await start();
    await eventually(() => holder.parts.fleet.decides, { withinMs: 10_000 });
    await holder.api.call('POST', policies(), policy('pay', breaking));
    const near = await connected(holder, 'near');
    near.report([failing()]);
    await eventually(() => isOpen(near));
    await holder.api.call('DELETE', `${policies()}/pay`);
    await eventually(() => near.verdicts.size === 0 && near.inForce.size === 0);
    await eventually(async () => (await withStore((store) => store.get(verdictKey(key())))) === undefined);
  });
});

describe('a person', () => {
  it('forces a breaker at any replica, for a time, and the agents are told', async () => {
    const { holder, other } = await startTwo();
    await holder.api.call('POST', policies(), policy('pay', breaking));
    const near = await connected(holder, 'near');
    const path = `${breakers()}/${breakerName(key())}/force`;
    const wrong = await other.api.call('PUT', path, { state: 'Half', for: '1' });
    expect(wrong.code).toBe(422);
    const { body } = await other.api.call('PUT', path, {
      state: 'Open',
      for: '10m',
      reason: 'drill',
      by: 'ann',
    });
    expect(body.status).toMatchObject({ forced: { state: 'Open', by: 'ann', reason: 'drill' } });
    await eventually(() => verdictOf(near)?.forced === ForcedState.FORCED_STATE_OPEN);
    expect(verdictOf(near)?.forcedRemainingMs).toBeGreaterThan(590_000);
    expect((await other.api.call('PUT', path, { state: 'None' })).code).toBe(200);
    await eventually(() => verdictOf(near)?.forced === ForcedState.FORCED_STATE_UNSPECIFIED);
    expect((await other.api.call('PUT', `${breakers()}/pay.00000000/force`, { state: 'None' })).code).toBe(
      404,
    );
  });

  it('sees each change of a breaker in a watch at any replica', async () => {
    const { holder, other } = await startTwo();
    await holder.api.call('POST', policies(), policy('pay', breaking));
    const far = await connected(other, 'far');
    await eventually(() => holder.deciders[0]?.agents.size === 1);
    for (const { api } of [holder, other]) {
      const stop = new AbortController();
      const states: string[] = [];
      const watching = (async () => {
        for await (const { object } of api.watch(`${breakers()}?watch=1`, stop.signal)) {
          states.push((object as unknown as BreakerObject).status.state);
        }
      })();
      await eventually(() => [holder, other].some(({ parts }) => parts.api.openWatches > 0));
      far.report([failing()]);
      await eventually(() => isOpen(far) && states.at(-1) === 'Open', { withinMs: 1_500 });
      far.report([{ key: key(), rule: 'r', successes: 1 }]);
      await eventually(() => !isOpen(far) && states.at(-1) === 'Closed', { withinMs: 1_500 });
      stop.abort();
      await watching;
    }
  });
});

describe('a replica on the embedded store', () => {
  it('goes on with its verdicts after a restart: nothing trips or closes because of it', async () => {
    const directory = temporaryDirectory('fleet');
    const first = await start(`file:${directory.path}`);
    await first.api.call('POST', policies(), policy('pay', breaking));
    const one = await connected(first, 'one');
    one.report([failing()]);
    await eventually(() => isOpen(one));
    await first.stop();
    const second = await start(`file:${directory.path}`);
    await eventually(() => second.parts.fleet.decides, { withinMs: 1_000 });
    const again = agent(second, { hello: { instance: 'one', connection: 2 } });
    await eventually(() => isOpen(again), { withinMs: 1_000 });
    expect(verdictOf(again)?.version?.epoch).toBe(verdictOf(one)?.version?.epoch);
    const { body } = await second.api.call<{ items: BreakerObject[] }>('GET', breakers());
    expect(body.items[0]?.status).toMatchObject({
      state: 'Open',
      transitions: [{ from: 'Closed', to: 'Open' }],
    });
    await second.stop();
    directory.remove();
  });
});

describe('without its store', () => {
  it('a replica goes on pushing and reading, says 503 to writes, and recovers', async () => {
    const lonely = await startEtcd();
    const replica = await start(`etcd:${lonely.endpoint}`);
    await replica.api.call('POST', policies(), policy('pay'));
    const one = await connected(replica, 'one');
    lonely.pause();
    const write = await replica.api.call<{ reason: string }>('PATCH', `${policies()}/pay`, {
      metadata: { labels: { a: 'b' } },
    });
    expect([write.code, write.body.reason]).toEqual([503, 'ServiceUnavailable']);
    expect((await replica.api.call('GET', policies())).code).toBe(200);
    expect((await replica.api.call('GET', `${policies()}/pay`)).code).toBe(200);
    const later = agent(replica, { hello: { instance: 'later' } });
    await eventually(() => later.inForce.size === 1);
    await eventually(async () => (await replica.api.call('GET', '/readyz')).code === 503, {
      withinMs: 15_000,
    });
    lonely.resume();
    await eventually(
      async () =>
        (await replica.api.call('PATCH', `${policies()}/pay`, { spec: { timeout: { total: '3s' } } }))
          .code === 200,
      { withinMs: 15_000 },
    );
    await eventually(() => [...one.inForce.values()][0]?.generation === 2, { withinMs: 10_000 });
    await replica.stop();
    await lonely.stop();
  });
});

async function withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(`etcd:${etcd.endpoint}`);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}
