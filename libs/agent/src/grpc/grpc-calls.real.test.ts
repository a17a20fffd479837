import * as grpc from '@grpc/grpc-js';
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
} from './grpc-fixture.js';

afterEach(cleanUp);

const { status } = grpc;

describe('a guarded gRPC call that goes well', () => {
  it('answers a single request with headers, answer and trailers as they are', async () => {
    const { client, bulwark } = await world(echoing);
    const heard = await unary(client).ended;
    expect(heard).toMatchObject({ code: status.OK, texts: ['hello!'] });
    expect(heard.trailers.get('t')).toEqual(['trailer']);
    expect(heard.headers).toBeInstanceOf(grpc.Metadata);
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });

  it('takes an upload message by message', async () => {
    const { client } = await world(echoing);
    const { call, ended } = upload(client);
    for (const text of ['a', 'b', 'c']) call.write({ text });
    call.end();
    expect(await ended).toMatchObject({ code: status.OK, texts: ['a,b,c'] });
  });

  it('hands a stream on with its headers and trailers', async () => {
    const { client } = await world(echoing);
    const heard = await watchStream(client, '-').ended;
    expect(heard).toMatchObject({ code: status.OK, texts: ['-a', '-b', '-c'] });
    expect([heard.headers?.get('h'), heard.trailers.get('t')]).toEqual([['header'], ['trailer']]);
  });

  it('talks in both directions, half-closed by the caller', async () => {
    const { client, bulwark } = await world(echoing);
    const { call, ended, texts } = chat(client);
    call.write({ text: 'a' });
    await new Promise((resolve) => call.once('data', resolve));
    expect(texts()).toEqual(['a!']);
    call.write({ text: 'b' });
    call.end();
    expect(await ended).toMatchObject({ code: status.OK, texts: ['a!', 'b!'] });
    expect(held(bulwark)).toEqual(NOTHING_HELD);
  });
});

describe('a guarded gRPC call that fails', () => {
  it('is retried while nothing of its answer was handed on, each attempt marked', async () => {
    const down = failWith(status.UNAVAILABLE);
    const { client, server } = await world({
      unary: (_call, callback) => callback(down),
      upload: (call, callback) => {
        call.resume();
        call.on('end', () => callback(down));
      },
      watch: (call) => call.emit('error', down),
      chat: (call) => {
        call.on('data', () => undefined);
        call.on('end', () => call.emit('error', down));
      },
    });
    const sent = upload(client);
    sent.call.write({ text: 'a' });
    sent.call.end();
    const talk = chat(client);
    talk.call.write({ text: 'a' });
    talk.call.end();
    for (const { ended } of [unary(client), sent, watchStream(client), talk]) {
      const heard = await ended;
      expect(heard).toMatchObject({ code: status.UNAVAILABLE, details: 'failed', texts: [] });
      expect(heard.trailers.get('grpc-retry-pushback-ms')).toEqual(['-1']);
    }
    const attempts = server.seen.map((metadata) => metadata.get('bulwark-attempt')[0] ?? '1');
    expect(attempts.toSorted()).toEqual(['1', '1', '1', '1', '2', '2', '2', '2', '3', '3', '3', '3']);
  });
});
