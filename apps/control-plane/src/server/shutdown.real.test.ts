import type { Store } from '@bulwark/store';
import { eventually, temporaryDirectory } from '@bulwark/testing';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { quietDecider } from '../fleet/quiet-decider.js';
import { ApiClient, POLICIES_PATH as PATH, policy } from '../in-process/api-client.js';
import { PlainAgent } from '../in-process/plain-agent.js';
import { startInProcess, type InProcessReplica } from '../in-process/replica.js';

let directory: ReturnType<typeof temporaryDirectory>;
let replica: InProcessReplica;
let api: ApiClient;
let slowMs = 0;
let commits = 0;
/** No request to the store is answered. */
let hangs = false;

beforeEach(async () => {
  directory = temporaryDirectory('shutdown');
  slowMs = 0;
  hangs = false;
  replica = await startInProcess({
    store: `file:${directory.path}`,
    createDecider: quietDecider,
    wrap: slowed,
  });
  api = new ApiClient(replica.http);
  await eventually(async () => (await api.call('GET', '/readyz')).code === 200);
});

afterEach(async () => {
  await replica.stop();
  directory.remove();
});

/** A store in which writes of objects take `slowMs`; the replica's own leases are as fast as ever. */
function slowed(store: Store): Store {
  const commit: Store['commit'] = async (transaction) => {
    if (hangs) return new Promise(() => undefined);
    if (transaction.writes.some(({ key }) => key.startsWith('/bulwark/objects/'))) {
      commits += 1;
      await new Promise((resolve) => setTimeout(resolve, slowMs));
    }
    return store.commit(transaction);
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'commit') return commit;
      const value: unknown = Reflect.get(target, name);
      const waits = hangs && typeof value === 'function' && name !== 'watch';
      if (waits) return () => new Promise(() => undefined);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

describe('a replica that is asked to stop', () => {
  it('finishes the write in flight, ends 50 watches, tells its agents, and is gone within 10 s', async () => {
    const agent = new PlainAgent(replica.grpc);
    await eventually(() => agent.updates.length === 1);
    const ends: string[] = [];
    const watches = Array.from({ length: 50 }, async () => {
      for await (const { type } of api.watch(
        `${PATH}?watch=1&allowWatchBookmarks=1`,
        AbortSignal.timeout(20_000),
      )) {
        ends.push(type);
      }
    });
    await eventually(() => replica.parts.api.openWatches === 50);
    slowMs = 800;
    commits = 0;
    const write = api.call('POST', PATH, policy('in-flight'));
    await eventually(() => commits === 1);
    const from = performance.now();
    const stopping = replica.stop();
    const farewell = await stopping;
    expect(performance.now() - from).toBeLessThan(10_000);
    expect((await write).code).toBe(201);
    await Promise.all(watches);
    expect(ends).toHaveLength(50);
    expect(new Set(ends)).toEqual(new Set(['BOOKMARK']));
    expect(agent.drains).toHaveLength(1);
    expect(agent.ended?.code).toBe(status.UNAVAILABLE);
    expect(farewell).toMatchObject({ clean: true, unfinished: 0 });
    agent.close();
  });

  it('is not ready at once, and refuses new work on connections that stand', async () => {
    const agent = new PlainAgent(replica.grpc);
    await eventually(() => agent.updates.length === 1);
    const stopping = replica.stop();
    const ready = await api.call('GET', '/readyz');
    expect(ready.code).toBe(503);
    const late = await api.call<{ reason: string }>('POST', PATH, policy('late'));
    expect([late.code, late.body.reason]).toEqual([503, 'ServiceUnavailable']);
    expect(late.headers.get('retry-after')).toBe('1');
    expect((await stopping).refused).toBe(1);
    agent.close();
  });

  it('is gone within 10 s though its store answers nothing any more', async () => {
    hangs = true;
    await eventually(async () => (await api.call('GET', '/readyz')).code === 503, { withinMs: 15_000 });
    const from = performance.now();
    await replica.stop();
    expect(performance.now() - from).toBeLessThan(10_000);
  });

  it('says so when work was left unfinished', async () => {
    slowMs = 8_000;
    commits = 0;
    const write = api.call('POST', PATH, policy('endless')).catch(() => undefined);
    await eventually(() => commits === 1);
    expect(await replica.stop()).toMatchObject({ clean: false, unfinished: 1 });
    await write;
  });
});
