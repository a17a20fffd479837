import * as grpc from '@grpc/grpc-js';
import { eventually, freePort, startTcpProxy } from '@bulwark/testing';
import { afterEach, describe, expect, it } from 'vitest';
import {
  agentWith,
  atEnd,
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
  retrying,
  unary,
  upload,
  watchStream,
  world,
  type EchoHandlers,
  type Text,
} from './grpc-fixture.js';
import { grpcGuard } from './grpc-options.js';

afterEach(cleanUp);

const { status } = grpc;
const unavailable = failWith(status.UNAVAILABLE);

/** Fails so often, then answers. */
function flaky(failures: number, error = unavailable): EchoHandlers {
  let left = failures;
  return {
    unary: (call, callback) => (left-- > 0 ? callback(error) : callback(null, call.request)),
    watch: (call) => {
      if (left-- > 0) call.emit('error', error);
      else call.end(void call.write(call.request));
    },
  };
}

describe('which calls are retried', () => {
  const unnamed = { ...retrying, retry: { ...retrying.retry, methods: undefined } };

  it('none whose policy names no POST, which is what a gRPC call is', async () => {
    const { client, server } = await world(flaky(1), unnamed);
    const heard = await unary(client).ended;
    expect([heard.code, server.seen.length]).toEqual([status.UNAVAILABLE, 1]);
    expect(heard.trailers.get('grpc-retry-pushback-ms')).toEqual([]);
  });

  it('those with an idempotency key, in the metadata or in the call’s guard', async () => {
    const { client, server } = await world(flaky(1), unnamed);
    const metadata = metadataOf({ 'idempotency-key': 'k1' });
    expect(await unary(client, 'a', { metadata }).ended).toMatchObject({ code: status.OK, texts: ['a'] });
    const again = await world(flaky(1), unnamed);
    const options = grpcGuard({ idempotencyKey: 'k2' });
    expect(await unary(again.client, 'a', { options }).ended).toMatchObject({ code: status.OK });
    const keys = [...server.seen, ...again.server.seen].map((seen) => seen.get('idempotency-key')[0]);
    expect(keys).toEqual(['k1', 'k1', 'k2', 'k2']);
  });

  it('those of methods that are declared repeatable, for the client or for the call', async () => {
    const server = await echoServer(flaky(1));
    const bulwark = await agentWith([policyDocument(unnamed)]);
    const idempotency = { 'demo.Echo/Unary': 'NO_SIDE_EFFECTS' } as const;
    const client = echoClient(server.address, [bulwark.grpc({ service: 'echo', idempotency })]);
    expect((await unary(client).ended).code).toBe(status.OK);
    const { client: other } = await world(flaky(1), unnamed);
    const options = grpcGuard({ idempotency: 'IDEMPOTENT' });
    expect((await watchStream(other, 'a', { options }).ended).texts).toEqual(['a']);
  });

  it('none that the dependency refused, and none it failed in a way the policy does not name', async () => {
    for (const code of [status.INVALID_ARGUMENT, status.NOT_FOUND, status.INTERNAL]) {
      const { client, server } = await world(flaky(1, failWith(code)));
      expect([(await unary(client).ended).code, server.seen.length]).toEqual([code, 1]);
    }
  });
});

describe('a pushback of the server', () => {
  const pushed = (text: string) =>
    world(flaky(1, failWith(status.UNAVAILABLE, { 'grpc-retry-pushback-ms': text })));

  it.each(['-1', 'soon', '1.5'])('of %s forbids the retry', async (text) => {
    const { client, server } = await pushed(text);
    expect((await unary(client).ended).code).toBe(status.UNAVAILABLE);
    expect(server.seen).toHaveLength(1);
  });

  it('of 0 allows it at once', async () => {
    const { client, server } = await pushed('0');
    expect((await unary(client).ended).code).toBe(status.OK);
    expect(server.seen).toHaveLength(2);
  });

  it('is waited for', async () => {
    const { client } = await pushed('300');
    const begunMs = performance.now();
    expect((await unary(client).ended).code).toBe(status.OK);
    expect(performance.now() - begunMs).toBeGreaterThanOrEqual(299);
  });

  it('that cannot fit the deadline ends the call at once', async () => {
    const { client, server } = await pushed('999999999');
    const begunMs = performance.now();
    expect((await unary(client).ended).code).toBe(status.UNAVAILABLE);
    expect(performance.now() - begunMs).toBeLessThan(4_000);
    expect(server.seen).toHaveLength(1);
  });
});

describe('what was sent', () => {
  it('goes once more in whole, headers of a failed attempt notwithstanding', async () => {
    const received: string[][] = [];
    const { client, server } = await world({
      upload: (call, callback) => {
        const texts: string[] = [];
        received.push(texts);
        call.sendMetadata(metadataOf({ attempt: String(received.length) }));
        call.on('data', ({ text }: Text) => texts.push(text));
        call.on('end', () =>
          received.length < 3 ? callback(unavailable) : callback(null, { text: texts.join('') }),
        );
      },
    });
    const { call, ended } = upload(client);
    let written = 0;
    for (const text of 'abc') call.write({ text }, () => (written += 1));
    call.end();
    const heard = await ended;
    expect(heard).toMatchObject({ code: status.OK, texts: ['abc'] });
    expect(heard.headers?.get('attempt')).toEqual(['3']);
    expect(received.map((texts) => texts.join(''))).toEqual(['abc', 'abc', 'abc']);
    expect([written, server.seen.length]).toEqual([3, 3]);
  });

  it('is not sent again once it was too much to keep', async () => {
    const { client, server, bulwark } = await world({
      upload: (call, callback) => {
        call.resume();
        call.on('end', () => callback(unavailable));
      },
    });
    const { call, ended } = upload(client);
    for (let n = 0; n < 4; n += 1) call.write({ text: 'x'.repeat(100_000) });
    call.end();
    const heard = await ended;
    expect([heard.code, server.seen.length]).toEqual([status.UNAVAILABLE, 1]);
    // The layer above may still try: it has what was sent.
    expect(heard.trailers.get('grpc-retry-pushback-ms')).toEqual([]);
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });

  it('a single request of any size is sent again', async () => {
    const { client, server } = await world(flaky(1));
    const text = 'x'.repeat(1_000_000);
    expect((await unary(client, text).ended).texts).toEqual([text]);
    expect(server.seen).toHaveLength(2);
  });

  it('a request that cannot be written is nobody’s failure and is not tried again', async () => {
    const { client, server } = await world(echoing, {
      ...retrying,
      circuitBreaker: { scope: 'Instance', trip: { consecutiveFailures: 1 } },
    });
    const heard = await unary(client, 'unwritable').ended;
    expect(heard).toMatchObject({ code: status.INTERNAL });
    expect(heard.details).toContain('no such field');
    expect((await unary(client).ended).code).toBe(status.OK);
    expect(server.seen).toHaveLength(1);
  });
});

describe('a stream that fails in the middle', () => {
  const middle: EchoHandlers = {
    watch: (call) => {
      call.write({ text: 'first' });
      setTimeout(() => call.emit('error', unavailable), 20);
    },
    chat: (call) => {
      call.write({ text: 'first' });
      setTimeout(() => call.emit('error', unavailable), 20);
    },
  };

  it('C139: is never retried after a message was handed on, and gives back its slot exactly once', async () => {
    const { client, server, bulwark } = await world(middle, {
      ...retrying,
      bulkhead: { maxConcurrent: 1 },
      fallback: [{ static: { status: 200, body: '{}' } }],
    });
    for (const begin of [() => watchStream(client), () => chat(client), () => watchStream(client)]) {
      const call = begin();
      const heard = await call.ended;
      expect(heard).toMatchObject({ code: status.UNAVAILABLE, texts: ['first'] });
      await eventually(() => held(bulwark).inFlight === 0);
      expect(call.statuses()).toBe(1);
    }
    expect(server.seen).toHaveLength(3);
  });

  it('counts as one failure, judged at its end', async () => {
    const { client } = await world(middle, {
      ...retrying,
      circuitBreaker: { scope: 'Instance', trip: { consecutiveFailures: 2 } },
    });
    await watchStream(client).ended;
    expect((await watchStream(client).ended).texts).toEqual(['first']);
    const rejected = await watchStream(client).ended;
    expect(rejected).toMatchObject({ code: status.UNAVAILABLE, texts: [] });
    expect(rejected.trailers.get('bulwark-rejected')).toEqual(['breaker-open']);
  });
});

describe('a server that is not there', () => {
  it('is tried as often as the policy says, and the call ends as unavailable', async () => {
    const bulwark = await agentWith([policyDocument(retrying)]);
    const client = echoClient(`127.0.0.1:${await freePort()}`, [bulwark.grpc({ service: 'echo' })]);
    const heard = await unary(client).ended;
    expect(heard.code).toBe(status.UNAVAILABLE);
    expect(heard.trailers.get('grpc-retry-pushback-ms')).toEqual(['-1']);
    expect(bulwark.state().policies[0]?.totals?.attempts).toBe(3);
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });

  const firstHangs = (): EchoHandlers & { calls: number } => {
    const handlers = {
      calls: 0,
      unary: (call: grpc.ServerUnaryCall<Text, Text>, callback: grpc.sendUnaryData<Text>) => {
        handlers.calls += 1;
        if (handlers.calls > 1) callback(null, call.request);
      },
    };
    return handlers;
  };

  it('that dies under a call is unavailable, and serves the retry when it is back', async () => {
    const handlers = firstHangs();
    const { address } = await echoServer(handlers);
    const proxy = await startTcpProxy({ target: address });
    atEnd(() => proxy.close());
    const bulwark = await agentWith([policyDocument(retrying)]);
    const client = echoClient(proxy.address, [bulwark.grpc({ service: 'echo' })]);
    const call = unary(client);
    await eventually(() => handlers.calls === 1);
    proxy.reset();
    expect(await call.ended).toMatchObject({ code: status.OK, texts: ['hello'] });
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });

  it('that dies under a stream ends it as unavailable, what came being kept', async () => {
    const { address } = await echoServer({ watch: (call) => void call.write({ text: 'first' }) });
    const proxy = await startTcpProxy({ target: address });
    atEnd(() => proxy.close());
    const bulwark = await agentWith([policyDocument(retrying)]);
    const client = echoClient(proxy.address, [bulwark.grpc({ service: 'echo' })]);
    const call = watchStream(client);
    await eventually(() => call.texts().length === 1);
    proxy.cut();
    expect(await call.ended).toMatchObject({ code: status.UNAVAILABLE, texts: ['first'] });
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });

  it('that cancels a call nobody cancelled is no failure of it; a retry follows where the policy names CANCELLED', async () => {
    const named = { ...retrying.retry, retryOn: { grpc: ['UNAVAILABLE', 'CANCELLED'] } };
    const trip = { circuitBreaker: { scope: 'Instance', trip: { consecutiveFailures: 1 } } };
    for (const [spec, code] of [
      [{ ...retrying, ...trip }, status.CANCELLED],
      [{ ...retrying, ...trip, retry: named }, status.OK],
    ] as const) {
      let calls = 0;
      const { client } = await world(
        {
          unary: (call, callback) => {
            calls += 1;
            if (calls === 1) callback(failWith(status.CANCELLED));
            else callback(null, call.request);
          },
        },
        spec,
      );
      expect((await unary(client).ended).code).toBe(code);
      expect((await unary(client).ended).code).toBe(status.OK);
    }
  });
});
