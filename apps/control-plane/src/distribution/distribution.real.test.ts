import { eventually, temporaryDirectory } from '@bulwark/testing';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { quietDecider } from '../fleet/quiet-decider.js';
import { ApiClient, POLICIES_PATH as PATH, policy } from '../in-process/api-client.js';
import { PlainAgent, type PlainAgentOptions } from '../in-process/plain-agent.js';
import { startInProcess, type InProcessReplica } from '../in-process/replica.js';
import type { PolicyStatus } from '../policies/policy-status.js';

let directory: ReturnType<typeof temporaryDirectory>;
let replica: InProcessReplica;
let api: ApiClient;
let agents: PlainAgent[];

async function start(): Promise<void> {
  replica = await startInProcess({ store: `file:${directory.path}`, createDecider: quietDecider });
  api = new ApiClient(replica.http);
  await eventually(async () => (await api.call('GET', '/readyz')).code === 200);
}

function agent(options: PlainAgentOptions = {}): PlainAgent {
  const made = new PlainAgent(replica.grpc, options);
  agents.push(made);
  return made;
}

beforeEach(async () => {
  directory = temporaryDirectory('distribution');
  agents = [];
  await start();
});

afterEach(async () => {
  for (const one of agents) {
    one.close();
    expect(one.violations).toEqual([]);
  }
  await replica.stop();
  directory.remove();
});

const generations = (one: PlainAgent): Record<string, number> =>
  Object.fromEntries([...one.inForce.values()].map(({ name, generation }) => [name?.name ?? '', generation]));
const statusOf = async (name: string) =>
  (await api.call('GET', `${PATH}/${name}`)).body.status as PolicyStatus;
const condition = (of: PolicyStatus, type: string) => of.conditions.find((one) => one.type === type);

describe('an agent', () => {
  it('gets what there is, then each change, then each deletion', async () => {
    await api.call('POST', PATH, policy('pay'));
    const one = agent();
    await eventually(() => generations(one)['pay'] === 1);
    expect(one.updates[0]).toMatchObject({ full: true });
    expect(one.welcome).toMatchObject({ slot: 0, serviceAgents: 1 });
    await api.call('PATCH', `${PATH}/pay`, { spec: { timeout: { total: '3s' } } });
    await eventually(() => generations(one)['pay'] === 2);
    expect(one.updates[1]).toMatchObject({ full: false });
    await api.call('DELETE', `${PATH}/pay`);
    await eventually(() => one.inForce.size === 0);
  });

  it('is told that there is nothing when there is nothing', async () => {
    const one = agent();
    await eventually(() => one.updates.length === 1);
    expect(one.updates[0]).toMatchObject({ full: true, resources: [] });
  });

  it('gets the policies of its namespace and its labels only', async () => {
    await api.call('POST', PATH, policy('for-all'));
    await api.call('POST', PATH, policy('for-web', { callers: { matchLabels: { app: 'web' } } }));
    await api.call('POST', PATH.replace('/shop/', '/shop-b/'), policy('elsewhere'));
    const web = agent({ hello: { instance: 'w', labels: { app: 'web' } } });
    const other = agent({ hello: { instance: 'o', labels: { app: 'api' } } });
    await eventually(() => web.inForce.size === 2 && other.inForce.size === 1);
    expect(Object.keys(generations(other))).toEqual(['for-all']);
  });

  it('that reconnects gets only what it lacks, and loses what went while it was away', async () => {
    await api.call('POST', PATH, policy('kept'));
    await api.call('POST', PATH, policy('left'));
    const one = agent();
    await eventually(() => one.inForce.size === 2);
    one.close();
    await api.call('DELETE', `${PATH}/left`);
    await api.call('POST', PATH, policy('new'));
    const held = one.updates.at(-1)?.version;
    const resources = [...one.inForce.values()].map(({ name, uid, generation }) => ({
      name,
      uid,
      generation,
    }));
    const again = agent({ hello: { connection: 2, held, resources } });
    await eventually(() => again.updates.length === 1);
    const [update] = again.updates;
    expect(update?.full).toBe(false);
    expect(update?.resources.map(({ name }) => name?.name)).toEqual(['new']);
    expect(update?.removed.map(({ name }) => name)).toEqual(['left']);
  });

  it('has one message in flight, and after its answer gets the newest state at once', async () => {
    await api.call('POST', PATH, policy('pay'));
    const slow = agent({ answers: false });
    await eventually(() => slow.updates.length === 1);
    for (const total of ['3s', '4s', '5s'])
      await api.call('PATCH', `${PATH}/pay`, { spec: { timeout: { total } } });
    expect(slow.updates).toHaveLength(1);
    slow.answer();
    await eventually(() => slow.updates.length === 2);
    expect(slow.updates[1]?.resources[0]?.generation).toBe(4);
  });

  it('that answers an old message does not make the new one count as in force', async () => {
    await api.call('POST', PATH, policy('pay'));
    const late = agent({ answers: false });
    await eventually(() => late.updates.length === 1);
    late.answer();
    await api.call('PATCH', `${PATH}/pay`, { spec: { timeout: { total: '3s' } } });
    await eventually(() => late.updates.length === 2);
    late.ackOf(late.updates[0]!);
    late.report([]);
    await eventually(async () => condition(await statusOf('pay'), 'Distributed')?.status === 'False');
    late.answer();
    await eventually(async () => condition(await statusOf('pay'), 'Distributed')?.status === 'True');
  });

  it('that refuses a policy is shown with its reason, gets the others, and is not sent that generation again', async () => {
    const refuse = (resource: { name: { name: string } | undefined; generation: number }) =>
      resource.name?.name === 'bad' && resource.generation === 1 ? 'cannot compile' : undefined;
    await api.call('POST', PATH, policy('bad'));
    await api.call('POST', PATH, policy('good'));
    const one = agent({ refuse });
    await eventually(() => generations(one)['good'] === 1);
    const refused = await eventually(async () => {
      const now = await statusOf('bad');
      return now.agents.refused === 1 && now;
    });
    expect(condition(refused, 'Accepted')).toMatchObject({ status: 'False', reason: 'RefusedByAgents' });
    expect(condition(refused, 'Accepted')?.message).toContain('cannot compile');
    await api.call('PATCH', `${PATH}/good`, { spec: { timeout: { total: '3s' } } });
    await eventually(() => generations(one)['good'] === 2);
    expect(one.updates.at(-1)?.resources.map(({ name }) => name?.name)).toEqual(['good']);
    const { body } = await api.call('GET', '/apis/bulwark.dev/v1/namespaces/shop/agents/storefront.a');
    expect(body.status).toMatchObject({ phase: 'Refused' });
    await api.call('PATCH', `${PATH}/bad`, { spec: { timeout: { total: '3s' } } });
    await eventually(async () => condition(await statusOf('bad'), 'Accepted')?.status === 'True');
  });
});

describe('a name of an agent', () => {
  it('belongs to the agent that is there: another start is refused while it answers', async () => {
    const first = agent();
    await eventually(() => first.updates.length === 1);
    const second = agent({ hello: { incarnation: 'two' } });
    await eventually(() => second.ended !== undefined);
    expect(second.ended?.code).toBe(status.ALREADY_EXISTS);
    expect(second.ended?.details).toContain('instance id "a"');
    expect(first.ended).toBeUndefined();
    first.close();
    const third = agent({ hello: { incarnation: 'three' } });
    await eventually(() => third.updates.length === 1, { withinMs: 1_000 });
  });

  it('goes to the newest connection of one start', async () => {
    const first = agent();
    await eventually(() => first.updates.length === 1);
    const again = agent({ hello: { connection: 2 } });
    await eventually(() => again.updates.length === 1 && first.ended !== undefined);
    expect(first.ended?.code).toBe(status.UNAVAILABLE);
    const late = agent({ hello: { connection: 1 } });
    await eventually(() => late.ended !== undefined);
    expect(again.ended).toBeUndefined();
  });

  it.each([
    [{ namespace: 'Shop' }, 'namespace "Shop"'],
    [{ service: 'store front' }, 'service "store front"'],
    [{ instance: 'a/b' }, 'instance "a/b"'],
    [{ incarnation: '' }, 'incarnation ""'],
    [{ labels: { big: 'x'.repeat(400) } }, 'label "big"'],
  ])('of another form is refused: %j', async (hello, text) => {
    const wrong = agent({ hello });
    await eventually(() => wrong.ended !== undefined);
    expect(wrong.ended?.code).toBe(status.INVALID_ARGUMENT);
    expect(wrong.ended?.details).toContain(text);
  });

  it('is not asked for when the agent speaks another protocol', async () => {
    const wrong = agent({ hello: { protocol: 7 } });
    await eventually(() => wrong.ended?.code === status.UNIMPLEMENTED);
  });
});

describe('a restart of the replica', () => {
  it('makes old watches list again, and agents keep what they have', async () => {
    await api.call('POST', PATH, policy('pay'));
    const { body } = await api.call<{ metadata: { resourceVersion: string } }>('GET', PATH);
    const one = agent();
    await eventually(() => one.inForce.size === 1);
    await api.call('DELETE', `${PATH}/pay`);
    await api.call('POST', PATH, policy('other'));
    await eventually(() => Object.keys(generations(one)).join() === 'other');
    await replica.stop();
    expect(one.drains).toHaveLength(1);
    expect(one.ended?.code).toBe(status.UNAVAILABLE);
    await start();
    const old = await api.call('GET', `${PATH}?watch=1&resourceVersion=${body.metadata.resourceVersion}`);
    expect(old.code).toBe(410);
    const held = one.updates.at(-1)?.version;
    const resources = [...one.inForce.values()].map(({ name, uid, generation }) => ({
      name,
      uid,
      generation,
    }));
    const again = agent({ hello: { connection: 2, held, resources } });
    await eventually(() => again.updates.length === 1);
    expect(again.updates[0]).toMatchObject({ full: false, resources: [], removed: [] });
  });

  it('on an older store raises the era, so that agents follow it', async () => {
    const one = agent({ hello: { held: { era: 1, revision: 1_000_000 } } });
    await eventually(() => one.updates.length === 1);
    expect(one.updates[0]?.version?.era).toBe(2);
    expect(one.updates[0]?.full).toBe(true);
  });
});
