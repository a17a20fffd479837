import * as grpc from '@grpc/grpc-js';
import { eventually } from '@bulwark/testing';
import { afterEach, describe, expect, it } from 'vitest';
import {
  agentWith,
  chat,
  cleanUp,
  echoClient,
  echoing,
  echoServer,
  failWith,
  held,
  metadataOf,
  NOTHING_HELD,
  policyDocument,
  unary,
  upload,
  watchStream,
  world,
  type EchoHandlers,
  type Heard,
} from './grpc-fixture.js';

afterEach(cleanUp);

const { status } = grpc;
const down = failWith(status.UNAVAILABLE);
const breaker = {
  timeout: { total: '5s' },
  circuitBreaker: {
    scope: 'Instance',
    trip: { consecutiveFailures: 2 },
    cooldown: { initial: '400ms', max: '400ms', factor: 1 },
    recovery: { steps: [] },
  },
};
const hanging: EchoHandlers = {
  unary: () => undefined,
  upload: () => undefined,
  watch: () => undefined,
  chat: () => undefined,
};

/** One call of each kind, each with all that it has to send. */
function allKinds(client: Parameters<typeof unary>[0]) {
  const sending = upload(client);
  sending.call.end({ text: 'a' });
  const talking = chat(client);
  talking.call.end({ text: 'a' });
  return [unary(client), sending, watchStream(client), talking];
}

describe('an open breaker', () => {
  it('rejects calls of every kind at once, with the reason and the wait in metadata', async () => {
    const { client, server, bulwark } = await world({ unary: (_call, callback) => callback(down) }, breaker);
    await unary(client).ended;
    await unary(client).ended;
    const heard = await Promise.all(allKinds(client).map(({ ended }) => ended));
    for (const { code, trailers, details } of heard) {
      expect(code).toBe(status.UNAVAILABLE);
      expect(trailers.get('bulwark-rejected')).toEqual(['breaker-open']);
      expect(Number(trailers.get('grpc-retry-pushback-ms')[0])).toBeGreaterThan(0);
      expect(details).toContain('is open');
    }
    expect(server.seen).toHaveLength(2);
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });

  it('C003: a probe that its caller cancels is given back, and the next call closes the breaker', async () => {
    let broken = true;
    const { client, server } = await world(
      {
        unary: (call, callback) =>
          broken ? callback(down) : void (call.request.text === 'hang' || callback(null, call.request)),
      },
      breaker,
    );
    await unary(client).ended;
    await unary(client).ended;
    broken = false;
    const probe = await eventually(async () => {
      const call = unary(client, 'hang');
      const heard = await Promise.race([call.ended, arrived(() => server.seen.length === 3)]);
      return heard === 'arrived' && call;
    });
    probe.call.cancel();
    expect((await probe.ended).code).toBe(status.CANCELLED);
    expect((await unary(client).ended).code).toBe(status.OK);
    expect((await unary(client).ended).code).toBe(status.OK);
  });

  it('does not count what a guard below rejected, and hands its word up', async () => {
    const below = failWith(status.UNAVAILABLE, {
      'bulwark-rejected': 'breaker-open',
      'grpc-retry-pushback-ms': '4000',
    });
    const { client, server } = await world(
      { unary: (_call, callback) => callback(below) },
      { ...breaker, retry: { maxAttempts: 3, methods: ['POST'] } },
    );
    for (let n = 0; n < 4; n += 1) {
      const heard = await unary(client).ended;
      expect(heard.trailers.get('bulwark-rejected')).toEqual(['breaker-open']);
    }
    expect(server.seen).toHaveLength(4);
  });
});

describe('an answer’s marks', () => {
  const relaying: EchoHandlers = {
    unary: (_call, callback) =>
      callback(failWith(status.UNAVAILABLE, { 'bulwark-rejected': 'breaker-open' })),
    watch: (call) => call.end(metadataOf({ 'bulwark-degraded': 'static;upstream="x"', t: 'own' })),
  };

  it('of a host that is not believed are taken away: its failures count, its claims go no further', async () => {
    const hosts: string[] = [];
    const { address } = await echoServer(relaying);
    const believes = (host: string) => {
      hosts.push(host);
      return false;
    };
    const bulwark = await agentWith([policyDocument(breaker)], { believes });
    const client = echoClient(address, [bulwark.grpc({ service: 'echo' })]);
    for (let n = 0; n < 2; n += 1) {
      expect((await unary(client).ended).trailers.get('bulwark-rejected')).toEqual([]);
    }
    expect((await unary(client).ended).trailers.get('bulwark-rejected')).toEqual(['breaker-open']);
    expect(new Set(hosts)).toEqual(new Set(['127.0.0.1']));
    const unguarded = echoClient(address, [bulwark.grpc()]);
    const { trailers } = await watchStream(unguarded).ended;
    expect([trailers.get('bulwark-degraded'), trailers.get('t')]).toEqual([[], ['own']]);
  });

  it('are not believed when the question itself fails', async () => {
    const { address } = await echoServer(relaying);
    const believes = (): boolean => {
      throw new Error('no idea');
    };
    const bulwark = await agentWith([policyDocument(breaker)], { believes });
    const client = echoClient(address, [bulwark.grpc({ service: 'echo' })]);
    const heard = await unary(client).ended;
    expect([heard.code, heard.trailers.get('bulwark-rejected')]).toEqual([status.UNAVAILABLE, []]);
  });
});

function arrived(condition: () => boolean): Promise<'arrived'> {
  return eventually(() => condition() && 'arrived');
}

describe('a full bulkhead', () => {
  const one = { timeout: { total: '5s' }, bulkhead: { maxConcurrent: 1 } };

  it('rejects calls of every kind as RESOURCE_EXHAUSTED', async () => {
    const { client, server, bulwark } = await world(hanging, one);
    const first = watchStream(client);
    await eventually(() => server.seen.length === 1);
    for (const { code, trailers } of await Promise.all(allKinds(client).map(({ ended }) => ended))) {
      expect(code).toBe(status.RESOURCE_EXHAUSTED);
      expect(trailers.get('bulwark-rejected')).toEqual(['bulkhead-full']);
    }
    expect(held(bulwark)).toEqual({ inFlight: 1, waiting: 0 });
    first.call.cancel();
    await first.ended;
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });

  it('holds a place until the final status of a stream, and gives it to the head of the queue', async () => {
    const open: grpc.ServerWritableStream<unknown, { text: string }>[] = [];
    const { client, server, bulwark } = await world(
      { ...echoing, watch: (call) => void open.push(call) },
      { timeout: { total: '5s' }, bulkhead: { maxConcurrent: 1, maxQueued: 2, maxWait: '4s' } },
    );
    const stream = watchStream(client);
    await eventually(() => open.length === 1);
    open[0]?.write({ text: 'a' });
    await eventually(() => stream.texts().length === 1);
    const order: string[] = [];
    const waiting = ['first', 'second'].map((text) =>
      unary(client, text).ended.then((heard: Heard) => order.push(...heard.texts)),
    );
    await eventually(() => held(bulwark).waiting === 2);
    expect(server.seen).toHaveLength(1);
    open[0]?.end();
    await stream.ended;
    await Promise.all(waiting);
    expect(order).toEqual(['first!', 'second!']);
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });

  it('lets no more than one message wait with a call that waits itself', async () => {
    const { client, bulwark, server } = await world(
      { ...echoing, unary: () => undefined },
      { timeout: { total: '5s' }, bulkhead: { maxConcurrent: 1, maxQueued: 1, maxWait: '4s' } },
    );
    const holder = unary(client);
    await eventually(() => server.seen.length === 1);
    const { call, ended } = upload(client);
    let written = 0;
    for (const text of ['a', 'b', 'c']) call.write({ text }, () => (written += 1));
    call.end();
    await eventually(() => held(bulwark).waiting === 1);
    expect(written).toBe(0);
    holder.call.cancel();
    expect(await ended).toMatchObject({ code: status.OK, texts: ['a,b,c'] });
    expect(written).toBe(3);
  });
});
