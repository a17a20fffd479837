import * as grpc from '@grpc/grpc-js';
import { eventually } from '@bulwark/testing';
import { afterEach, describe, expect, it } from 'vitest';
import {
  agentWith,
  cleanUp,
  echoClient,
  echoing,
  echoServer,
  failWith,
  held,
  NOTHING_HELD,
  policyDocument,
  unary,
  upload,
  watchStream,
  world,
  type EchoHandlers,
} from './grpc-fixture.js';

afterEach(cleanUp);

const { status } = grpc;
const oneFailure = { circuitBreaker: { scope: 'Instance', trip: { consecutiveFailures: 1 } } };

/** Tells what deadline each call came with, milliseconds left. */
function telling(): { readonly leftMs: number[]; readonly handlers: EchoHandlers } {
  const leftMs: number[] = [];
  return {
    leftMs,
    handlers: {
      unary: (call, callback) => {
        const deadline = call.getDeadline();
        leftMs.push(Number(deadline) - Date.now());
        if (call.request.text !== 'hang') callback(null, call.request);
      },
    },
  };
}

describe('the deadline handed down', () => {
  it('is the smallest of the caller’s own, the policy’s attempt and the policy’s total', async () => {
    const { leftMs, handlers } = telling();
    const { client } = await world(handlers, { timeout: { attempt: '2s', total: '20s' } });
    await unary(client).ended;
    await unary(client, 'a', { options: { deadline: Date.now() + 500 } }).ended;
    await unary(client, 'a', { options: { deadline: Date.now() + 60_000 } }).ended;
    const total = await world(handlers, { timeout: { total: '3s' } });
    await unary(total.client).ended;
    const limits = [2_000, 500, 2_000, 3_000];
    leftMs.forEach((left, index) => {
      expect(left).toBeLessThanOrEqual((limits[index] ?? 0) + 2);
      expect(left).toBeGreaterThan((limits[index] ?? 0) - 450);
    });
    expect(leftMs).toHaveLength(4);
  });

  it('is the caller’s own, or none, where no policy matches', async () => {
    const { leftMs, handlers } = telling();
    const server = await echoServer(handlers);
    const bulwark = await agentWith([policyDocument({ target: { service: 'another' } })]);
    const client = echoClient(server.address, [bulwark.grpc()]);
    await unary(client).ended;
    await unary(client, 'a', { options: { deadline: Date.now() + 500 } }).ended;
    expect(leftMs[0]).toBe(Infinity);
    expect(leftMs[1]).toBeLessThanOrEqual(502);
  });

  it('ends a call that no policy guards, or that is bypassed, at the caller’s own', async () => {
    const { client, bulwark } = await world(telling().handlers, { timeout: { total: '50ms' } });
    bulwark.bypass(60_000, 'test');
    const begunMs = performance.now();
    const heard = await unary(client, 'hang', { options: { deadline: Date.now() + 200 } }).ended;
    expect(heard.code).toBe(status.DEADLINE_EXCEEDED);
    expect(performance.now() - begunMs).toBeGreaterThan(190);
    const call = unary(client, 'hang');
    call.call.cancel();
    expect((await call.ended).code).toBe(status.CANCELLED);
    expect((await unary(client).ended).code).toBe(status.OK);
  });

  it('is of each attempt, from what is left', async () => {
    const leftMs: number[] = [];
    const { client } = await world(
      {
        unary: (call, callback) => {
          leftMs.push(Number(call.getDeadline()) - Date.now());
          setTimeout(() => callback(failWith(status.UNAVAILABLE)), 200);
        },
      },
      {
        timeout: { total: '10s' },
        retry: { maxAttempts: 2, methods: ['POST'], backoff: { base: '1ms', max: '1ms' } },
      },
    );
    await unary(client).ended;
    expect(leftMs).toHaveLength(2);
    expect((leftMs[0] ?? 0) - (leftMs[1] ?? 0)).toBeGreaterThan(190);
  });
});

describe('an attempt that runs out of time', () => {
  it('that had its full timeout is the dependency’s failure, and is told as DEADLINE_EXCEEDED', async () => {
    const { client, bulwark } = await world(telling().handlers, {
      timeout: { attempt: '150ms', total: '5s' },
      ...oneFailure,
    });
    const heard = await unary(client, 'hang').ended;
    expect(heard).toMatchObject({ code: status.DEADLINE_EXCEEDED, texts: [] });
    expect(heard.details).toContain('echo had no answer within 150 ms');
    expect(bulwark.state().policies[0]?.totals?.timeouts).toBe(1);
    expect((await unary(client).ended).trailers.get('bulwark-rejected')).toEqual(['breaker-open']);
  });

  it('that its caller cut short is nobody’s failure', async () => {
    const { client } = await world(telling().handlers, { timeout: { total: '5s' }, ...oneFailure });
    const options = { deadline: Date.now() + 100 };
    expect((await unary(client, 'hang', { options }).ended).code).toBe(status.DEADLINE_EXCEEDED);
    expect((await unary(client).ended).code).toBe(status.OK);
  });

  it('the server’s own DEADLINE_EXCEEDED, early, is its failure', async () => {
    const { client, bulwark } = await world(
      { unary: (_call, callback) => callback(failWith(status.DEADLINE_EXCEEDED)) },
      { timeout: { total: '5s' }, ...oneFailure },
    );
    expect((await unary(client).ended).details).toBe('failed');
    expect(bulwark.state().policies[0]?.totals?.timeouts).toBe(0);
    expect((await unary(client).ended).trailers.get('bulwark-rejected')).toEqual(['breaker-open']);
  });

  it('in shadow mode is ended by the caller’s deadline alone, and is nobody’s failure', async () => {
    const { client, bulwark } = await world(telling().handlers, {
      mode: 'Shadow',
      timeout: { total: '5s' },
      ...oneFailure,
    });
    const options = { deadline: Date.now() + 100 };
    expect((await unary(client, 'hang', { options }).ended).code).toBe(status.DEADLINE_EXCEEDED);
    expect(bulwark.state().policies[0]?.breakers[0]?.state).toBe('closed');
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });
});

describe('1,000 calls with a deadline of 1 ms', () => {
  it('from one caller trip nothing, and leave nothing behind', async () => {
    const { client, bulwark } = await world(telling().handlers, {
      timeout: { attempt: '20s', total: '30s' },
      retry: { maxAttempts: 3, methods: ['POST'] },
      ...oneFailure,
      bulkhead: { maxConcurrent: 2_000 },
    });
    expect((await unary(client).ended).code).toBe(status.OK);
    const calls = Array.from({ length: 1_000 }, () =>
      unary(client, 'hang', { options: { deadline: Date.now() + 1 } }),
    );
    for (const { ended } of calls) expect((await ended).code).toBe(status.DEADLINE_EXCEEDED);
    expect(calls.every((call) => call.statuses() === 1)).toBe(true);
    expect(bulwark.state().policies[0]?.breakers[0]?.state).toBe('closed');
    expect(held(bulwark)).toEqual(NOTHING_HELD);
    expect((await unary(client).ended).code).toBe(status.OK);
  });
});

describe('the time of a stream', () => {
  const every = (intervalMs: number): EchoHandlers => ({
    watch: (call) => {
      let sent = 0;
      const timer = setInterval(() => call.write({ text: String((sent += 1)) }), intervalMs);
      call.on('cancelled', () => clearInterval(timer));
    },
  });

  it('C131: is total: a message each second does not keep a stream of 2 s alive, nor is it tried again', async () => {
    const { client, server, bulwark } = await world(every(1_000), {
      timeout: { attempt: '2s', total: '10s' },
      retry: { maxAttempts: 3, methods: ['POST'], backoff: { base: '1ms', max: '1ms' } },
      ...oneFailure,
    });
    const begunMs = performance.now();
    const heard = await watchStream(client).ended;
    const tookMs = performance.now() - begunMs;
    expect(heard).toMatchObject({ code: status.DEADLINE_EXCEEDED });
    expect(heard.texts[0]).toBe('1');
    expect(heard.details).toContain(`echo had sent ${heard.texts.length} message(s), and was not at its end`);
    expect(tookMs).toBeGreaterThanOrEqual(1_999);
    expect(tookMs).toBeLessThan(3_500);
    expect(server.seen).toHaveLength(1);
    expect((await unary(client).ended).trailers.get('bulwark-rejected')).toEqual(['breaker-open']);
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });

  it('that its caller let pass without taking what came is nobody’s failure', async () => {
    const { client, bulwark } = await world(every(5), { timeout: { total: '400ms' }, ...oneFailure });
    const stalled = client.watch({ text: 'a' }, new grpc.Metadata(), {});
    const ended = new Promise<grpc.StatusObject>((resolve) => stalled.on('status', resolve));
    stalled.on('error', () => undefined);
    expect((await ended).code).toBe(status.DEADLINE_EXCEEDED);
    expect(bulwark.state().policies[0]?.breakers[0]?.state).toBe('closed');
  });

  it('that its caller let pass without sending is nobody’s failure', async () => {
    const { client, bulwark } = await world(echoing, { timeout: { total: '200ms' }, ...oneFailure });
    const { call, ended } = upload(client);
    call.write({ text: 'a' });
    expect((await ended).code).toBe(status.DEADLINE_EXCEEDED);
    expect(bulwark.state().policies[0]?.breakers[0]?.state).toBe('closed');
  });

  it('a server that does not answer what was sent in whole is to blame', async () => {
    const { client, bulwark } = await world(
      { upload: (call) => void call.resume() },
      { timeout: { total: '200ms' }, ...oneFailure },
    );
    const { call, ended } = upload(client);
    call.end({ text: 'a' });
    expect((await ended).code).toBe(status.DEADLINE_EXCEEDED);
    await eventually(() => bulwark.state().policies[0]?.breakers[0]?.state === 'open');
  });
});

describe('what an application takes slowly', () => {
  it('comes whole and in order, no faster than it is taken', async () => {
    let written = 0;
    const { client, bulwark } = await world({
      watch: (call) => {
        const more = (): void => {
          while (written < 200) {
            written += 1;
            if (!call.write({ text: `${written}:${'x'.repeat(20_000)}` }))
              return void call.once('drain', more);
          }
          call.end();
        };
        more();
      },
    });
    const call = client.watch({ text: 'a' }, new grpc.Metadata(), {});
    const ended = new Promise<grpc.StatusObject>((resolve) => call.on('status', resolve));
    const numbers: number[] = [];
    let writtenEarly = 0;
    for await (const { text } of call as AsyncIterable<{ text: string }>) {
      numbers.push(parseInt(text, 10));
      if (numbers.length === 5) {
        await new Promise((resolve) => setTimeout(resolve, 300));
        writtenEarly = written;
      }
    }
    expect((await ended).code).toBe(status.OK);
    expect(numbers).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
    expect(writtenEarly).toBeLessThan(200);
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });
});
