import { eventually, freePort } from '@bulwark/testing';
import { connect, constants, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { admin, atEnd, cleanUp, sidecar, upstream, via } from '../sidecar-fixture.js';
import { EchoClient, echoServer, Metadata, readAll, Status, type EchoHandlers } from './grpc-fixture.js';

afterEach(cleanUp);

/** Of 64 KiB each: far more than windows and buffers hold. */
const MESSAGES = 600;

const ECHOES: EchoHandlers = {
  unary: (call, done) => done(null, call.request),
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
};

/** An HTTP/2 server that answers as it is told: what no gRPC library would send. */
async function rawUpstream(answer: (stream: ServerHttp2Stream) => void): Promise<string> {
  const server = createServer();
  const sessions = new Set<{ destroy: () => void }>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.resume();
    answer(stream);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    sessions.forEach((session) => session.destroy());
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('gRPC through the sidecar', () => {
  it('passes calls of all four kinds on', async () => {
    const { url } = await echoServer(ECHOES);
    const { listen } = await sidecar([], { 'fraud-api': url });
    const client = new EchoClient(listen);
    const reply = await client.unary('hi');
    expect([reply.code, reply.body]).toEqual([Status.OK, 'hi']);
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

  it('lets a conversation go back and forth, the headers before the first message', async () => {
    const { url } = await echoServer({
      both: (call) => {
        call.sendMetadata(new Metadata());
        call.on('data', (part: Buffer) => call.write(part));
        call.on('end', () => call.end());
      },
    });
    // With a retry in the policy headers may be held back, but not from a caller that has not said everything.
    const spec = {
      target: { service: 'fraud-api' },
      timeout: { total: '10s' },
      retry: { maxAttempts: 2, methods: ['POST'] },
    };
    const { listen } = await sidecar([spec], { 'fraud-api': url });
    const call = new EchoClient(listen).both();
    call.on('error', () => undefined);
    await new Promise((resolve) => call.once('metadata', resolve));
    for (let turn = 0; turn < 20; turn += 1) {
      const answer = new Promise<Buffer>((resolve) => call.once('data', resolve));
      call.write(Buffer.from(`turn ${turn}`));
      expect((await answer).toString()).toBe(`turn ${turn}`);
    }
    const ended = readAll(call);
    call.end();
    expect((await ended).code).toBe(Status.OK);
  });

  it('holds headers of a silent stream back for a moment only, and not at all where no retry can follow', async () => {
    const { url } = await echoServer({ down: (call) => call.sendMetadata(new Metadata()) });
    const retry = { maxAttempts: 2, methods: ['POST'] };
    const spec = { target: { service: 'fraud-api' }, timeout: { total: '10s' }, retry };
    const quickest = async (policy: object): Promise<number> => {
      const { listen } = await sidecar([policy], { 'fraud-api': url });
      const client = new EchoClient(listen);
      const times: number[] = [];
      for (let count = 0; count < 5; count += 1) {
        const began = performance.now();
        const call = client.down('x');
        call.on('error', () => undefined);
        await new Promise((resolve) => call.once('metadata', resolve));
        times.push(performance.now() - began);
        call.cancel();
      }
      return Math.min(...times);
    };
    expect(await quickest(spec)).toBeGreaterThanOrEqual(245);
    expect(await quickest({ ...spec, mode: 'Shadow' })).toBeLessThan(245);
    expect(await quickest({ ...spec, retry: { maxAttempts: 2 } })).toBeLessThan(245);
  });

  it('passes metadata and trailers on as they are: several values, binary ones, none of one connection', async () => {
    let seen = new Metadata();
    const { url } = await echoServer({
      unary: (call, done) => {
        seen = call.metadata;
        call.sendMetadata(call.metadata);
        done(null, call.request, call.metadata);
      },
    });
    const { listen } = await sidecar([], { 'fraud-api': url });
    const metadata = new Metadata();
    metadata.add('many', 'one');
    metadata.add('many', 'two, three');
    metadata.set('key-bin', Buffer.from([0, 255, 44, 13, 10]));
    metadata.set('authorization', 'Bearer x');
    const reply = await new EchoClient(listen).unary('x', { metadata });
    for (const side of [seen, reply.headers, reply.trailers]) {
      expect(side.get('key-bin')).toEqual([Buffer.from([0, 255, 44, 13, 10])]);
      expect(side.get('many').join(', ')).toBe('one, two, three');
      expect(side.get('authorization')).toEqual(['Bearer x']);
    }
    expect(seen.get('via')[0]).toMatch(/^2\.0 bulwark-[0-9a-f]{8}$/);
    expect(seen.get('traceparent')[0]).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  });

  it('passes compressed messages on', async () => {
    const { url } = await echoServer(ECHOES, { 'grpc.default_compression_algorithm': 2 });
    const { listen } = await sidecar([], { 'fraud-api': url });
    const client = new EchoClient(listen, 'fraud-api', { 'grpc.default_compression_algorithm': 2 });
    const body = 'compress me '.repeat(10_000);
    expect((await client.unary(body)).body).toBe(body);
  });

  it('passes large messages on both ways', async () => {
    const { url } = await echoServer(ECHOES, { 'grpc.max_receive_message_length': -1 });
    const { listen } = await sidecar([], { 'fraud-api': url });
    const body = Buffer.alloc(20 * 1024 * 1024, 'x');
    const reply = await new EchoClient(listen).unary(body);
    expect([reply.code, reply.body.length]).toEqual([Status.OK, body.length]);
  });

  it('keeps little in memory for a caller that reads slowly', async () => {
    let written = 0;
    const message = Buffer.alloc(64 * 1024, 'x');
    const { url } = await echoServer({
      down: (call) => {
        const more = (): void => {
          while (written < MESSAGES * message.length) {
            written += message.length;
            if (!call.write(message)) return void call.once('drain', more);
          }
          call.end();
        };
        more();
      },
    });
    const { listen } = await sidecar([], { 'fraud-api': url });
    const session = connect(`http://127.0.0.1:${listen}`);
    atEnd(() => session.destroy());
    const call = session.request({
      ':method': 'POST',
      ':path': '/demo.Echo/Down',
      ':authority': 'fraud-api',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    call.end(Buffer.from([0, 0, 0, 0, 0]));
    await new Promise((resolve) => call.once('response', resolve));
    let before = -1;
    // It stands still, of 39 MB, after what the windows and buffers between the two hold.
    await eventually(
      async () => {
        if (before === written) return true;
        before = written;
        await new Promise((resolve) => setTimeout(resolve, 300));
        return false;
      },
      { withinMs: 20_000 },
    );
    expect(written).toBeLessThan(8 * 1024 * 1024);
    let read = 0;
    call.on('data', (chunk: Buffer) => (read += chunk.length));
    await new Promise((resolve) => call.once('end', resolve));
    expect(read).toBe(MESSAGES * (message.length + 5));
  });

  it('keeps little in memory for a service that reads slowly', async () => {
    let resume: (() => void) | undefined;
    let received = 0;
    const { url } = await echoServer({
      up: (call, done) => {
        call.pause();
        resume = () => {
          call.on('data', (part: Buffer) => (received += part.length));
          call.on('end', () => done(null, Buffer.from('all')));
          call.resume();
        };
      },
    });
    const { listen } = await sidecar([], { 'fraud-api': url });
    const session = connect(`http://127.0.0.1:${listen}`);
    atEnd(() => session.destroy());
    const call = session.request({
      ':method': 'POST',
      ':path': '/demo.Echo/Up',
      ':authority': 'fraud-api',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const frame = Buffer.concat([Buffer.from([0, 0, 1, 0, 0]), Buffer.alloc(65_536, 'x')]);
    let sent = 0;
    const more = (): void => {
      while (sent < MESSAGES) {
        sent += 1;
        if (!call.write(frame)) return void call.once('drain', more);
      }
      call.end();
    };
    more();
    await eventually(() => resume !== undefined);
    let before = -1;
    await eventually(
      async () => {
        if (before === sent) return true;
        before = sent;
        await new Promise((resolve) => setTimeout(resolve, 300));
        return false;
      },
      { withinMs: 20_000 },
    );
    expect(sent).toBeLessThan(150);
    call.resume();
    resume?.();
    await new Promise((resolve) => call.once('end', resolve));
    expect(received).toBe(MESSAGES * 65_536);
  });

  it('carries 1,000 streams at once on one connection', async () => {
    let open = 0;
    const { url } = await echoServer({
      both: (call) => {
        open += 1;
        call.on('data', (part: Buffer) => call.write(part));
        call.on('end', () => call.end());
      },
    });
    const running = await sidecar([], { 'fraud-api': url });
    const client = new EchoClient(running.listen);
    const calls = Array.from({ length: 1_000 }, (_, index) => {
      const call = client.both();
      call.write(Buffer.from(String(index)));
      return { call, ended: readAll(call) };
    });
    await eventually(() => open === 1_000, { withinMs: 20_000 });
    expect((await admin(running.admin, '/metrics')).body).toContain('bulwark_proxy_in_flight 1000');
    for (const { call } of calls) call.end();
    const ends = await Promise.all(calls.map(({ ended }) => ended));
    expect(ends.every(({ code }) => code === Status.OK)).toBe(true);
    expect(ends.map(({ messages }) => messages[0])).toEqual(calls.map((_, index) => String(index)));
  });

  it('serves HTTP/1.1 on the same port', async () => {
    const { url } = await echoServer(ECHOES);
    const web = await upstream((_request, response) => response.end('by http'));
    const { listen } = await sidecar([], { 'fraud-api': url, web });
    expect((await via(listen, 'http://web/x')).body).toBe('by http');
    expect((await new EchoClient(listen).unary('x')).body).toBe('x');
    expect((await via(listen, 'http://web/x')).body).toBe('by http');
  });

  it('refuses HTTP/2 that is no gRPC, with a reason', async () => {
    const { listen } = await sidecar([], {});
    const session = connect(`http://127.0.0.1:${listen}`);
    atEnd(() => session.destroy());
    for (const head of [
      { ':path': '/' },
      { ':path': '/', ':method': 'POST', 'content-type': 'application/grpc-web' },
    ]) {
      const call = session.request(head);
      call.end();
      const headers = await new Promise<Record<string, unknown>>((resolve) => call.once('response', resolve));
      let body = '';
      for await (const chunk of call) body += String(chunk);
      expect([headers[':status'], headers['content-type']]).toEqual([415, 'application/problem+json']);
      expect(body).toContain('Make other calls by HTTP/1.1');
    }
  });

  it('refuses calls that name no service, or itself', async () => {
    const running = await sidecar([], { again: 'http://127.0.0.1:1' });
    const { listen } = running;
    const self = await new EchoClient(listen, `127.0.0.1:${listen}`).unary('x');
    expect([self.code, self.details]).toEqual([
      Status.FAILED_PRECONDITION,
      `127.0.0.1:${listen} is this sidecar itself. Name the service that is to be called.`,
    ]);
    const nobody = await new EchoClient(listen, 'fraud:99999').unary('x');
    expect(nobody.code).toBe(Status.INVALID_ARGUMENT);
  });

  it('finds a loop over another sidecar', async () => {
    const port = await freePort();
    const far = await sidecar([], { 'fraud-api': `http://127.0.0.1:${port}` });
    const near = await sidecar([], { 'fraud-api': `http://127.0.0.1:${far.listen}` }, [
      '--listen',
      `127.0.0.1:${port}`,
    ]);
    const reply = await new EchoClient(near.listen).unary('x');
    expect([reply.code, reply.details]).toEqual([
      Status.FAILED_PRECONDITION,
      'The call came back to the sidecar it had left: an upstream points at the proxy.',
    ]);
  });

  it('names a status for every way an upstream can end without one', async () => {
    const grpc = { 'content-type': 'application/grpc' };
    const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM } = constants;
    const ways: [string, Status, (stream: ServerHttp2Stream) => void][] = [
      [
        'no trailers',
        Status.UNKNOWN,
        (stream) => (stream.respond({ ':status': 200, ...grpc }), stream.end()),
      ],
      [
        'only headers',
        Status.UNKNOWN,
        (stream) => stream.respond({ ':status': 200, ...grpc }, { endStream: true }),
      ],
      ['503', Status.UNAVAILABLE, (stream) => (stream.respond({ ':status': 503 }), stream.end('sorry'))],
      ['404', Status.UNIMPLEMENTED, (stream) => stream.respond({ ':status': 404 }, { endStream: true })],
      [
        'html',
        Status.UNKNOWN,
        (stream) => (stream.respond({ ':status': 200, 'content-type': 'text/html' }), stream.end('<')),
      ],
      [
        'junk',
        Status.UNKNOWN,
        (stream) => stream.respond({ ':status': 200, ...grpc, 'grpc-status': 'x' }, { endStream: true }),
      ],
      ['calm', Status.RESOURCE_EXHAUSTED, (stream) => stream.close(NGHTTP2_ENHANCE_YOUR_CALM)],
      ['error', Status.INTERNAL, (stream) => stream.close(NGHTTP2_INTERNAL_ERROR)],
      ['refused', Status.UNAVAILABLE, (stream) => stream.close(NGHTTP2_REFUSED_STREAM)],
      ['lost', Status.UNAVAILABLE, (stream) => stream.session?.socket.destroy()],
    ];
    ways.push([
      'a header of one connection',
      Status.NOT_FOUND,
      (stream) => {
        stream.respond({ ':status': 200, ...grpc, 'grpc-status': '5', te: 'trailers' }, { endStream: true });
      },
    ]);
    for (const [name, code, answer] of ways) {
      const { listen } = await sidecar([], { 'fraud-api': await rawUpstream(answer) });
      const reply = await new EchoClient(listen).unary('x');
      expect([name, reply.code], reply.details).toEqual([name, code]);
    }
  });

  it('sends a call again that a connection refused unprocessed, once it is another', async () => {
    let streams = 0;
    const url = await rawUpstream((stream) => {
      streams += 1;
      if (streams === 1) return stream.close(constants.NGHTTP2_REFUSED_STREAM);
      stream.respond(
        { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '5' },
        { endStream: true },
      );
    });
    const { listen } = await sidecar([], { 'fraud-api': url });
    expect((await new EchoClient(listen).unary('x')).code).toBe(Status.NOT_FOUND);
    expect(streams).toBe(2);
  });
});
