import * as grpc from '@grpc/grpc-js';
import { AsyncLocalStorage } from 'node:async_hooks';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
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
  metadataOf,
  policyDocument,
  retrying,
  unary,
  upload,
  watchStream,
  world,
  type EchoClient,
  type EchoHandlers,
  type Text,
} from './grpc-fixture.js';
import { grpcGuard } from './grpc-options.js';
import type { GrpcServerOptions } from './grpc-server.js';

afterEach(cleanUp);

const { status } = grpc;

/** A service that answers each call by making the same call below; both sides have the SDK. */
async function layer(below: string, spec: object = retrying, options?: GrpcServerOptions) {
  const bulwark = await agentWith([policyDocument(spec)]);
  const client = echoClient(below, [bulwark.grpc({ service: 'echo' })]);
  const handlers: EchoHandlers = {
    unary: (call, callback) => {
      client.unary(call.request, new grpc.Metadata(), {}, (error, answer) =>
        // A service's own words, not its dependency's: nothing is relayed but what the SDK relays.
        error === null
          ? callback(null, answer)
          : callback({ code: error.code, details: 'my dependency failed' }),
      );
    },
    watch: (call) => {
      const stream = client.watch(call.request, new grpc.Metadata(), {});
      stream.on('data', (message: Text) => call.write(message));
      stream.on('error', (error: grpc.ServiceError) =>
        call.emit('error', { code: error.code, details: 'broken' }),
      );
      stream.on('end', () => call.end());
    },
    upload: (call, callback) => {
      const stream = client.upload(new grpc.Metadata(), {}, (error, answer) =>
        error === null ? callback(null, answer) : callback({ code: error.code, details: 'broken' }),
      );
      call.on('data', (message: Text) => stream.write(message));
      call.on('end', () => stream.end());
    },
    chat: (call) => {
      const stream = client.chat(new grpc.Metadata(), {});
      stream.on('data', (message: Text) => call.write(message));
      stream.on('error', (error: grpc.ServiceError) =>
        call.emit('error', { code: error.code, details: 'broken' }),
      );
      stream.on('end', () => call.end());
      call.on('data', (message: Text) => stream.write(message));
      call.on('end', () => stream.end());
    },
  };
  const server = await echoServer(handlers, { interceptors: [bulwark.grpcServer(options)] });
  return { ...server, bulwark };
}

const dead: EchoHandlers = {
  unary: (_call, callback) => callback(failWith(status.UNAVAILABLE)),
  upload: (call, callback) => {
    call.resume();
    call.on('end', () => callback(failWith(status.UNAVAILABLE)));
  },
  watch: (call) => void call.emit('error', failWith(status.UNAVAILABLE)),
  chat: (call) => {
    call.resume();
    call.on('end', () => call.emit('error', failWith(status.UNAVAILABLE)));
  },
};

const kinds = {
  unary: (client: EchoClient) => unary(client),
  watch: (client: EchoClient) => watchStream(client),
  upload: (client: EchoClient) => {
    const watched = upload(client);
    watched.call.write({ text: 'a' });
    watched.call.end();
    return watched;
  },
  chat: (client: EchoClient) => {
    const watched = chat(client);
    watched.call.write({ text: 'a' });
    watched.call.end();
    return watched;
  },
};

describe('three layers of three attempts over a dead leaf', () => {
  it.each(Object.entries(kinds))(
    'S4.10: a call of the kind %s reaches the leaf 3 times, not 27',
    async (_kind, call) => {
      const leaf = await echoServer(dead);
      const two = await layer(leaf.address);
      const one = await layer(two.address);
      const bulwark = await agentWith([policyDocument(retrying)]);
      const client = echoClient(one.address, [bulwark.grpc({ service: 'echo' })]);
      const heard = await call(client).ended;
      expect(heard.code).toBe(status.UNAVAILABLE);
      expect(heard.trailers.get('grpc-retry-pushback-ms')).toEqual(['-1']);
      expect(leaf.seen).toHaveLength(3);
      expect([one.seen.length, two.seen.length]).toEqual([1, 1]);
    },
  );

  it('a layer that is called again makes one attempt', async () => {
    const leaf = await echoServer(dead);
    const two = await layer(leaf.address);
    const caller = echoClient(two.address, []);
    const metadata = metadataOf({ 'bulwark-attempt': '2' });
    const heard = await unary(caller, 'a', { metadata }).ended;
    expect(heard.code).toBe(status.UNAVAILABLE);
    expect(leaf.seen.map((seen) => seen.get('bulwark-attempt'))).toEqual([['2']]);
  });

  it.each<[string, () => boolean]>([
    ['is not trusted', () => false],
    [
      'cannot be judged',
      () => {
        throw new Error('no idea');
      },
    ],
  ])('a peer that %s is not believed, and its mark goes no further', async (_what, trusted) => {
    const leaf = await echoServer(dead);
    const two = await layer(leaf.address, retrying, { trusted });
    const heard = await unary(echoClient(two.address, []), 'a', {
      metadata: metadataOf({ 'bulwark-attempt': '2' }),
    }).ended;
    expect(heard.code).toBe(status.UNAVAILABLE);
    expect(two.seen[0]?.get('bulwark-attempt')).toEqual([]);
    expect(leaf.seen.map((seen) => seen.get('bulwark-attempt')[0])).toEqual([undefined, '2', '3']);
  });
});

describe('a server that joins what it answers', () => {
  it('hands the caller’s deadline down to gRPC and to HTTP calls', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const http = createServer((request, response) => {
      seen.push(request.headers);
      response.end('ok');
    });
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    atEnd(() => new Promise((resolve) => void http.close(resolve)));
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/`;
    const leftMs: number[] = [];
    const leaf = await echoServer({
      unary: (call, callback) => {
        leftMs.push(Number(call.getDeadline()) - Date.now());
        callback(null, call.request);
      },
    });
    const bulwark = await agentWith([policyDocument({ timeout: { total: '20s' } })]);
    const below = echoClient(leaf.address, [bulwark.grpc({ service: 'echo' })]);
    const unguarded = echoClient(leaf.address, [bulwark.grpc({ service: 'nobody' })]);
    const { address } = await echoServer(
      {
        unary: (call, callback) => {
          void (async () => {
            // Far from the interceptor's own turn.
            await new Promise((resolve) => setTimeout(resolve, 20));
            await (await bulwark.fetch(url)).text();
            await unary(below).ended;
            await unary(unguarded).ended;
            callback(null, call.request);
          })();
        },
      },
      { interceptors: [bulwark.grpcServer()] },
    );
    const metadata = metadataOf({ 'bulwark-attempt': '3' });
    const options = { deadline: Date.now() + 3_000 };
    expect((await unary(echoClient(address, []), 'a', { metadata, options }).ended).code).toBe(status.OK);
    expect(Number(seen[0]?.['bulwark-deadline'])).toBeLessThanOrEqual(3_000);
    expect(Number(seen[0]?.['bulwark-deadline'])).toBeGreaterThan(1_000);
    expect(seen[0]?.['bulwark-attempt']).toBe('3');
    expect(leftMs).toHaveLength(2);
    for (const left of leftMs) expect([left <= 3_000, left > 1_000]).toEqual([true, true]);
  });

  it('refuses a call whose deadline has passed, before its handler', async () => {
    const bulwark = await agentWith([policyDocument({})]);
    const { address, seen } = await echoServer(echoing, { interceptors: [bulwark.grpcServer()] });
    // A client of grpc-js would not even send it.
    const late: grpc.Interceptor = (options, nextCall) =>
      new grpc.InterceptingCall(nextCall(options), {
        start: (metadata, listener, next) => {
          metadata.set('grpc-timeout', '0m');
          next(metadata, listener);
        },
      });
    const client = echoClient(address, [late]);
    for (const { ended } of [unary(client), watchStream(client), chat(client)]) {
      const heard = await ended;
      expect(heard.code).toBe(status.DEADLINE_EXCEEDED);
      expect(heard.trailers.get('bulwark-rejected')).toEqual(['deadline']);
    }
    expect(seen).toHaveLength(0);
  });

  it('leaves answers alone that have nothing to say', async () => {
    const bulwark = await agentWith([policyDocument({})]);
    const { address } = await echoServer(
      { ...echoing, watch: (call) => void call.emit('error', failWith(status.NOT_FOUND, { own: 'mark' })) },
      { interceptors: [bulwark.grpcServer()] },
    );
    const client = echoClient(address, []);
    const well = await unary(client).ended;
    expect([well.texts, well.trailers.get('t')]).toEqual([['hello!'], ['trailer']]);
    const failed = await watchStream(client).ended;
    expect([failed.code, failed.trailers.get('own')]).toEqual([status.NOT_FOUND, ['mark']]);
    const talk = chat(client);
    talk.call.write({ text: 'a' });
    talk.call.end();
    expect((await talk.ended).texts).toEqual(['a!']);
  });
});

describe('C183: the context of a call', () => {
  it('is its own in every attempt, queued, retried and answered by a stand-in, 20 at once', async () => {
    const requests = new AsyncLocalStorage<string>();
    const attempts: [string, string | undefined][] = [];
    const watching: grpc.Interceptor = (options, nextCall) =>
      new grpc.InterceptingCall(nextCall(options), {
        start: (metadata, listener, next) => {
          attempts.push([metadata.get('who')[0] as string, requests.getStore()]);
          next(metadata, listener);
        },
      });
    const server = await echoServer(dead);
    const bulwark = await agentWith([
      policyDocument({
        ...retrying,
        bulkhead: { maxConcurrent: 2, maxQueued: 50, maxWait: '4s' },
        retry: { ...retrying.retry, budget: { ratio: '100%', minPerSecond: 100, window: '10s' } },
      }),
    ]);
    const client = echoClient(server.address, [bulwark.grpc({ service: 'echo' }), watching]);
    const stoodIn: [string, string | undefined][] = [];
    const ends = Array.from({ length: 20 }, (_, index) => {
      const who = `request ${index}`;
      return requests.run(who, async () => {
        const fallback = () => {
          stoodIn.push([who, requests.getStore()]);
          return { text: who };
        };
        const helped = index % 2 === 0;
        const options = helped ? grpcGuard({ fallback }) : {};
        const heard = await unary(client, who, { metadata: metadataOf({ who }), options }).ended;
        expect([heard.texts, requests.getStore()]).toEqual([helped ? [who] : [], who]);
      });
    });
    await Promise.all(ends);
    expect(attempts).toHaveLength(60);
    for (const [who, context] of [...attempts, ...stoodIn]) expect(context).toBe(who);
    expect(stoodIn).toHaveLength(10);
  });

  it('the application’s own metadata is left as it was', async () => {
    const { client, server } = await world(dead);
    const metadata = metadataOf({ who: 'ann' });
    await unary(client, 'a', { metadata }).ended;
    expect(server.seen).toHaveLength(3);
    expect(metadata.getMap()).toEqual({ who: 'ann' });
  });
});
