import { afterEach, describe, expect, it } from 'vitest';
import { cleanUp, sidecar } from '../sidecar-fixture.js';
import { EchoClient, echoServer, readAll, Status } from './grpc-fixture.js';

afterEach(cleanUp);

describe('gRPC through the sidecar', () => {
  it('passes calls of all four kinds on, with metadata and messages as they are', async () => {
    const { url } = await echoServer({
      unary: (call, done) => {
        const { metadata } = call;
        call.sendMetadata(metadata.clone());
        const trailers = metadata.clone();
        trailers.set('of', 'trailers');
        done(null, Buffer.concat([Buffer.from('echo '), call.request]), trailers);
      },
      down: (call) => {
        for (const part of call.request.toString().split(' ')) call.write(Buffer.from(part));
        call.end();
      },
      up: (call, done) => {
        const parts: string[] = [];
        call.on('data', (part: Buffer) => parts.push(part.toString()));
        call.on('end', () => done(null, Buffer.from(parts.join('+'))));
      },
      both: (call) => {
        call.on('data', (part: Buffer) => call.write(Buffer.from(part.toString().toUpperCase())));
        call.on('end', () => call.end());
      },
    });
    const { listen } = await sidecar([], { 'fraud-api': url });
    const client = new EchoClient(listen);
    const reply = await client.unary('hi');
    expect([reply.code, reply.body]).toEqual([Status.OK, 'echo hi']);
    const down = await readAll(client.down('a b c'));
    expect([down.code, down.messages]).toEqual([Status.OK, ['a', 'b', 'c']]);
    const joined = await new Promise((resolve) => {
      const call = client.up((_error, value) => resolve(value?.toString()));
      for (const part of ['x', 'y', 'z']) call.write(Buffer.from(part));
      call.end();
    });
    expect(joined).toBe('x+y+z');
    const both = client.both();
    const ended = readAll(both);
    for (const part of ['p', 'q']) both.write(Buffer.from(part));
    both.end();
    expect((await ended).messages).toEqual(['P', 'Q']);
  });
});
