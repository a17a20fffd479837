import * as grpc from '@grpc/grpc-js';
import { eventually } from '@bulwark/testing';
import { EventEmitter } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import {
  chat,
  cleanUp,
  echoing,
  failWith,
  held,
  NOTHING_HELD,
  unary,
  upload,
  watchStream,
  world,
  type CallParts,
  type EchoClient,
  type EchoHandlers,
} from './grpc-fixture.js';
import { grpcGuard } from './grpc-options.js';

afterEach(cleanUp);

const { status } = grpc;

const kinds = {
  unary: (client: EchoClient, parts?: CallParts) => unary(client, 'a', parts),
  upload: (client: EchoClient, parts?: CallParts) => {
    const watched = upload(client, parts);
    watched.call.write({ text: 'a' });
    return watched;
  },
  watch: (client: EchoClient, parts?: CallParts) => watchStream(client, 'a', parts),
  chat: (client: EchoClient, parts?: CallParts) => {
    const watched = chat(client, parts);
    watched.call.write({ text: 'a' });
    return watched;
  },
} as const;
const kindNames = Object.keys(kinds) as (keyof typeof kinds)[];

/** Hangs, and counts the calls that were cancelled under it. */
function hanging() {
  const counts = { cancelled: 0 };
  const wait = (call: { on(event: 'cancelled', listener: () => void): unknown }): void =>
    void call.on('cancelled', () => (counts.cancelled += 1));
  const handlers: EchoHandlers = {
    unary: wait,
    upload: wait,
    watch: (call) => {
      wait(call);
      call.write({ text: 'first' });
    },
    chat: (call) => {
      wait(call);
      call.write({ text: 'first' });
    },
  };
  return { counts, handlers };
}

const breakable = {
  timeout: { total: '10s' },
  retry: { maxAttempts: 2, methods: ['POST'], backoff: { base: '5s', max: '5s', jitter: 'none' } },
  circuitBreaker: { scope: 'Instance', trip: { consecutiveFailures: 2 } },
  bulkhead: { maxConcurrent: 1, maxQueued: 1, maxWait: '9s' },
};

describe.each(kindNames)('a cancelled call of the kind %s', (kind) => {
  it('ends at the server and at the caller, once, and counts as nothing', async () => {
    const { counts, handlers } = hanging();
    const { client, bulwark, server } = await world(handlers, breakable);
    for (let n = 1; n <= 3; n += 1) {
      const watched = kinds[kind](client);
      await eventually(() => server.seen.length === n);
      if (kind === 'watch' || kind === 'chat') await eventually(() => watched.texts().length === 1);
      watched.call.cancel();
      expect((await watched.ended).code).toBe(status.CANCELLED);
      await eventually(() => counts.cancelled === n);
      watched.call.cancel();
      expect(watched.statuses()).toBe(1);
      expect(held(bulwark)).toEqual(NOTHING_HELD);
    }
    expect(bulwark.state().policies[0]?.totals).toMatchObject({ cancelled: 3, failed: 0, attempts: 3 });
  });

  it('never reaches the server when it is cancelled before it could begin', async () => {
    const { client, server, bulwark } = await world(hanging().handlers, breakable);
    const early = kinds[kind](client, { options: grpcGuard({ signal: AbortSignal.abort() }) });
    expect((await early.ended).code).toBe(status.CANCELLED);
    const atOnce = kinds[kind](client);
    atOnce.call.cancel();
    expect((await atOnce.ended).code).toBe(status.CANCELLED);
    expect((await unary(client, 'x', { options: { deadline: Date.now() - 1 } }).ended).code).toBe(
      status.DEADLINE_EXCEEDED,
    );
    expect(server.seen).toHaveLength(0);
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });

  it('leaves the queue when it waits for a place', async () => {
    const { client, server, bulwark } = await world(hanging().handlers, breakable);
    const holder = watchStream(client);
    await eventually(() => server.seen.length === 1);
    const abort = new AbortController();
    const queued = kinds[kind](client, { options: grpcGuard({ signal: abort.signal }) });
    await eventually(() => held(bulwark).waiting === 1);
    abort.abort();
    expect((await queued.ended).code).toBe(status.CANCELLED);
    expect(held(bulwark)).toEqual({ inFlight: 1, waiting: 0 });
    holder.call.cancel();
    await holder.ended;
    expect(server.seen).toHaveLength(1);
  });

  it('ends while it waits for its next attempt', async () => {
    const down = failWith(status.UNAVAILABLE);
    const { client, server, bulwark } = await world(
      {
        unary: (_call, callback) => callback(down),
        upload: (_call, callback) => callback(down),
        watch: (call) => void call.emit('error', down),
        chat: (call) => void call.emit('error', down),
      },
      breakable,
    );
    const watched = kinds[kind](client);
    await eventually(() => server.seen.length === 1 && held(bulwark).inFlight === 0);
    watched.call.cancel();
    expect((await watched.ended).code).toBe(status.CANCELLED);
    expect(server.seen).toHaveLength(1);
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });
});

describe('the three ways to end', () => {
  it('C185: a cancelled call, a cancelled stream and a stream at its end are three distinct ends', async () => {
    const { handlers } = hanging();
    const { client, bulwark, server } = await world(
      { ...handlers, chat: echoing.chat as NonNullable<EchoHandlers['chat']> },
      breakable,
    );
    const single = unary(client);
    await eventually(() => server.seen.length === 1);
    single.call.cancel();
    expect(await single.ended).toMatchObject({ code: status.CANCELLED, texts: [] });
    const stream = watchStream(client);
    await eventually(() => stream.texts().length === 1);
    stream.call.cancel();
    expect(await stream.ended).toMatchObject({ code: status.CANCELLED, texts: ['first'] });
    const whole = chat(client);
    whole.call.end({ text: 'a' });
    expect(await whole.ended).toMatchObject({ code: status.OK, texts: ['a!'] });
    expect(bulwark.state().policies[0]?.totals).toMatchObject({ cancelled: 2, fresh: 1, failed: 0 });
  });

  it('a parent call that is cancelled takes the calls made for it along', async () => {
    const { counts, handlers } = hanging();
    const { client, server, bulwark } = await world(handlers, breakable);
    const parent = Object.assign(new EventEmitter(), {
      getDeadline: () => Infinity,
    });
    const watched = unary(client, 'a', {
      options: { parent: parent as unknown as NonNullable<grpc.CallOptions['parent']> },
    });
    await eventually(() => server.seen.length === 1);
    parent.emit('cancelled');
    expect((await watched.ended).code).toBe(status.CANCELLED);
    await eventually(() => counts.cancelled === 1);
    expect(bulwark.state().policies[0]?.totals).toMatchObject({ cancelled: 1 });
    expect(parent.listenerCount('cancelled')).toBeLessThanOrEqual(1);
  });
});
