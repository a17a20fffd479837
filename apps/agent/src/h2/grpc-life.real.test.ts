import { eventually, startTcpProxy } from '@bulwark/testing';
import { connect } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { admin, atEnd, cleanUp, fraudSpec, inbound, sidecar } from '../sidecar-fixture.js';
import { EchoClient, echoServer, Metadata, readAll, Status } from './grpc-fixture.js';

afterEach(cleanUp);

const retrySpec = {
  target: { service: 'fraud-api' },
  timeout: { total: '20s' },
  retry: { maxAttempts: 3, methods: ['POST'], backoff: { base: '10s', max: '10s', jitter: 'none' } },
};

interface Totals {
  readonly attempts: number;
  readonly cancelled: number;
  readonly failed: number;
  readonly inFlight: number;
  readonly waiting: number;
}
const totals = async (port: number): Promise<Totals> => {
  const { policies } = JSON.parse((await admin(port, '/state')).body) as { policies: { totals: Totals }[] };
  const [policy] = policies;
  if (policy === undefined) throw new Error('no policy');
  return policy.totals;
};

/** RFC 9113 §4.1. */
function frame(type: number, flags: number, stream: number, payload: readonly number[]): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, Buffer.from(payload)]);
}

/** POST http /demo.Echo/Unary in HPACK (RFC 7541), nothing indexed. */
function headBlock(authority: string, contentType: string): number[] {
  const text = (value: string): number[] => [value.length, ...Buffer.from(value)];
  return [
    ...[0x83, 0x86],
    ...[0x04, ...text('/demo.Echo/Unary')],
    ...[0x01, ...text(authority)],
    ...[0x0f, 0x10, ...text(contentType)],
  ];
}

describe('a caller that cancels its gRPC call', () => {
  it('while the call waits in the bulkhead: the upstream never sees it', async () => {
    let calls = 0;
    const { url } = await echoServer({ unary: () => void (calls += 1) });
    const bulkhead = { maxConcurrent: 1, maxQueued: 5, maxWait: '10s' };
    const spec = { target: { service: 'fraud-api' }, timeout: { total: '20s' }, bulkhead };
    const running = await sidecar([spec], { 'fraud-api': url });
    const client = new EchoClient(running.listen);
    const first = new AbortController();
    const holder = client.unary('holds', { abort: first });
    await eventually(() => calls === 1);
    const second = new AbortController();
    const waiting = client.unary('waits', { abort: second });
    await eventually(async () => (await totals(running.admin)).waiting === 1);
    second.abort();
    expect((await waiting).code).toBe(Status.CANCELLED);
    await eventually(async () => (await totals(running.admin)).waiting === 0);
    first.abort();
    await holder;
    await eventually(async () => (await totals(running.admin)).inFlight === 0);
    expect(await totals(running.admin)).toMatchObject({ attempts: 1, cancelled: 2, failed: 0 });
    expect(calls).toBe(1);
  });

  it('before the answer, between its messages, or while it sends: the upstream is told, the breaker is not', async () => {
    let begun = 0;
    let cancelled = 0;
    const seen = (call: { on: (event: 'cancelled', listener: () => void) => unknown }): void => {
      begun += 1;
      call.on('cancelled', () => (cancelled += 1));
    };
    const { url } = await echoServer({
      unary: (call) => seen(call),
      down: (call) => {
        seen(call);
        call.write(Buffer.from('first'));
      },
      up: (call) => {
        seen(call);
        call.resume();
      },
      both: (call) => {
        seen(call);
        call.on('data', (part: Buffer) => call.write(part));
      },
    });
    const spec = { ...fraudSpec, timeout: { total: '20s' } };
    const running = await sidecar([spec], { 'fraud-api': url });
    const client = new EchoClient(running.listen);
    const calls = [
      () => {
        const abort = new AbortController();
        void client.unary('x', { abort });
        return () => abort.abort();
      },
      () => {
        const call = client.down('x');
        void readAll(call);
        return () => call.cancel();
      },
      () => {
        const call = client.up(() => undefined);
        call.write(Buffer.from('part'));
        return () => call.cancel();
      },
      () => {
        const call = client.both();
        void readAll(call);
        call.write(Buffer.from('part'));
        return () => call.cancel();
      },
    ];
    for (const [index, make] of calls.entries()) {
      const cancel = make();
      await eventually(() => begun === index + 1);
      cancel();
      await eventually(() => cancelled === index + 1);
    }
    await eventually(async () => (await totals(running.admin)).inFlight === 0);
    expect(await totals(running.admin)).toMatchObject({ attempts: 4, cancelled: 4, failed: 0 });
    expect((await admin(running.admin, '/metrics')).body).toContain('outcome="cancelled"} 4');
  });

  it('while a retry is waited for: no further attempt is made', async () => {
    const running = await sidecar([retrySpec], { 'fraud-api': 'http://127.0.0.1:1' });
    const abort = new AbortController();
    const reply = new EchoClient(running.listen).unary('x', { abort });
    await eventually(async () => (await totals(running.admin)).attempts === 1);
    abort.abort();
    expect((await reply).code).toBe(Status.CANCELLED);
    await eventually(async () => (await totals(running.admin)).cancelled === 1);
    expect((await totals(running.admin)).attempts).toBe(1);
  });

  it('in the same breath as it makes it: nothing is left of it', async () => {
    const { url } = await echoServer({ unary: () => undefined });
    const running = await sidecar([], { 'fraud-api': url });
    const socket = connectTcp(running.listen, '127.0.0.1');
    socket.on('error', () => undefined);
    atEnd(() => socket.destroy());
    let answered = 0;
    socket.on('data', (chunk: Buffer) => (answered += chunk.length));
    const kinds = [
      ['POST', 'fraud-api', 'application/grpc'],
      ['POST', 'fraud:99999', 'application/grpc'],
      ['POST', 'fraud-api', 'text/plain'],
    ] as const;
    const frames = [Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(0x4, 0, 0, [])];
    for (let count = 0; count < 300; count += 1) {
      const [, authority, contentType] = kinds[count % 3] ?? kinds[0];
      const id = 2 * count + 1;
      frames.push(
        frame(0x1, 0x4, id, headBlock(authority, contentType)),
        // CANCEL
        frame(0x3, 0, id, [0, 0, 0, 8]),
      );
    }
    socket.write(Buffer.concat(frames));
    await eventually(() => answered > 0);
    await eventually(async () =>
      (await admin(running.admin, '/metrics')).body.includes('bulwark_proxy_in_flight 0'),
    );
    expect((await new EchoClient(running.listen, '127.0.0.1:1').unary('x')).code).toBe(Status.UNAVAILABLE);
    running.signal();
    expect(await running.exit).toBe(0);
  });

  it('thousands of times on one connection: the connection stands, and so do the other calls', async () => {
    let begun = 0;
    let lost = 0;
    const { url } = await echoServer({
      unary: (call, done) => {
        begun += 1;
        if (call.request.toString() === 'last') done(null, call.request);
      },
      down: (call) => {
        call.write(Buffer.from('first'));
        call.on('cancelled', () => (lost += 1));
      },
    });
    const { listen } = await sidecar([], { 'fraud-api': url });
    const session = connect(`http://127.0.0.1:${listen}`);
    atEnd(() => session.destroy());
    let broken = false;
    session.on('error', () => (broken = true)).on('close', () => (broken = true));
    const head = { ':method': 'POST', ':authority': 'fraud-api', 'content-type': 'application/grpc' };
    const stands = session.request({ ...head, ':path': '/demo.Echo/Down' });
    stands.on('error', () => undefined);
    stands.end(Buffer.from([0, 0, 0, 0, 0]));
    await new Promise((resolve) => stands.once('data', resolve));
    for (let round = 0; round < 30; round += 1) {
      for (let count = 0; count < 100; count += 1) {
        const call = session.request({ ...head, ':path': '/demo.Echo/Unary' });
        call.on('error', () => undefined);
        call.end(Buffer.from([0, 0, 0, 0, 0]));
        setTimeout(() => call.close(8), 5);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await eventually(() => begun > 0);
    expect([broken, lost]).toEqual([false, 0]);
    const last = session.request({ ...head, ':path': '/demo.Echo/Unary' });
    last.end(Buffer.concat([Buffer.from([0, 0, 0, 0, 4]), Buffer.from('last')]));
    let answer = '';
    for await (const chunk of last) answer += String(chunk);
    expect(answer).toContain('last');
    expect(lost).toBe(0);
  });

  it('by closing its connection: all its calls are cancelled', async () => {
    let open = 0;
    const { url } = await echoServer({
      both: (call) => {
        open += 1;
        call.on('cancelled', () => (open -= 1));
        call.resume();
      },
    });
    const running = await sidecar([fraudSpec], { 'fraud-api': url });
    const session = connect(`http://127.0.0.1:${running.listen}`);
    session.on('error', () => undefined);
    for (let count = 0; count < 20; count += 1) {
      const call = session.request({
        ':method': 'POST',
        ':path': '/demo.Echo/Both',
        ':authority': 'fraud-api',
        'content-type': 'application/grpc',
      });
      call.on('error', () => undefined);
    }
    await eventually(() => open === 20);
    session.destroy();
    await eventually(() => open === 0);
    await eventually(async () => (await totals(running.admin)).cancelled === 20);
  });
});

describe('a slow side of a gRPC stream', () => {
  it('is nobody’s failure when it is the caller that sends nothing', async () => {
    const { url } = await echoServer({ up: (call) => void call.resume() });
    const running = await sidecar([fraudSpec], { 'fraud-api': url });
    const client = new EchoClient(running.listen);
    for (let count = 0; count < 4; count += 1) {
      const code = await new Promise((resolve) => {
        const call = client.up((error) => resolve(error?.code));
        call.write(Buffer.from('and then nothing'));
      });
      expect(code).toBe(Status.DEADLINE_EXCEEDED);
    }
    expect((await admin(running.admin, '/metrics')).body).toContain('state="closed",scope="local"} 1');
  });
});

describe('the life of a sidecar with gRPC calls', () => {
  it('S10: drains by GOAWAY: streams under way go on to their end, new calls go elsewhere, exit 0', async () => {
    let ends: () => void = () => undefined;
    const { url } = await echoServer({
      unary: (call, done) => done(null, call.request),
      down: (call) => {
        call.write(Buffer.from('first'));
        ends = () => {
          call.write(Buffer.from('last'));
          call.end();
        };
      },
    });
    const running = await sidecar([], { 'fraud-api': url });
    const session = connect(`http://127.0.0.1:${running.listen}`);
    atEnd(() => session.destroy());
    const head = { ':method': 'POST', ':authority': 'fraud-api', 'content-type': 'application/grpc' };
    const stream = session.request({ ...head, ':path': '/demo.Echo/Down' });
    stream.end(Buffer.from([0, 0, 0, 0, 0]));
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    await eventually(() => chunks.length > 0);
    const goaway = new Promise<number>((resolve) => session.once('goaway', resolve));
    running.signal();
    expect(await goaway).toBe(0);
    // Another connection is told why.
    const late = await new EchoClient(running.listen).unary('late');
    expect([late.code, late.trailers.get('bulwark-rejected')]).toEqual([Status.UNAVAILABLE, ['draining']]);
    const trailers = new Promise<Record<string, unknown>>((resolve) => stream.once('trailers', resolve));
    ends();
    expect((await trailers)['grpc-status']).toBe('0');
    expect(Buffer.concat(chunks).toString()).toContain('last');
    expect(await running.exit).toBe(0);
    expect(running.logs.at(-1)).toMatchObject({
      fields: { accepted: 1, completed: 1, refused: 1, unfinished: 0 },
    });
  });

  it('S10: cuts streams that do not end in time, counts them, and ends with 1', async () => {
    const { url } = await echoServer({ down: (call) => void call.write(Buffer.from('first')) });
    const running = await inbound(url, [], {}, ['--drain-timeout', '200ms']);
    const stream = new EchoClient(running.inbound).down('x');
    const ended = readAll(stream);
    await new Promise((resolve) => stream.once('data', resolve));
    running.signal();
    expect(await running.exit).toBe(1);
    expect((await ended).code).not.toBe(Status.OK);
    expect(running.logs.at(-1)).toMatchObject({ fields: { accepted: 1, unfinished: 1 } });
  });
});

describe('connections to a gRPC upstream', () => {
  it('C179: are replaced when the upstream asks for it, with no call lost', async () => {
    const sessions = { 'grpc.max_connection_age_ms': 300, 'grpc.max_connection_age_grace_ms': 5_000 };
    const { url } = await echoServer(
      { unary: (call, done) => void setTimeout(() => done(null, call.request), 20) },
      sessions,
    );
    const { listen } = await sidecar([], { 'fraud-api': url });
    const client = new EchoClient(listen);
    const codes = new Map<Status, number>();
    const until = performance.now() + 2_500;
    const caller = async (): Promise<void> => {
      while (performance.now() < until) {
        const { code } = await client.unary('x');
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: 10 }, caller));
    expect([...codes.keys()]).toEqual([Status.OK]);
    expect(codes.get(Status.OK)).toBeGreaterThan(50);
  });

  it(
    'C173: are given up when they are half-dead, so that later calls get through',
    { timeout: 30_000 },
    async () => {
      const target = await echoServer({ unary: (call, done) => done(null, call.request) });
      const proxy = await startTcpProxy({ target: `127.0.0.1:${target.port}` });
      atEnd(() => proxy.close());
      const spec = { target: { service: 'fraud-api' }, timeout: { total: '500ms' } };
      const { listen } = await sidecar([spec], { 'fraud-api': `http://${proxy.address}` });
      const client = new EchoClient(listen);
      expect((await client.unary('x')).code).toBe(Status.OK);
      proxy.pause();
      expect((await client.unary('x')).code).toBe(Status.DEADLINE_EXCEEDED);
      // It is asked by a ping; a while after that calls go by another connection.
      await eventually(
        async () => {
          expect((await client.unary('x')).code).toBe(Status.DEADLINE_EXCEEDED);
          return proxy.connections() > 1;
        },
        { withinMs: 15_000 },
      );
      proxy.resume();
      await eventually(async () => (await client.unary('x')).code === Status.OK);
    },
  );

  it('are shared by calls of one upstream', async () => {
    const { port } = await echoServer({ unary: (call, done) => done(null, call.request) });
    const proxy = await startTcpProxy({ target: `127.0.0.1:${port}` });
    atEnd(() => proxy.close());
    const { listen } = await sidecar([], { 'fraud-api': `http://${proxy.address}` });
    const client = new EchoClient(listen);
    const replies = await Promise.all(Array.from({ length: 200 }, () => client.unary('x')));
    expect(replies.every(({ code }) => code === Status.OK)).toBe(true);
    expect(proxy.connections()).toBe(1);
  });

  it('are several when one is not allowed enough streams', async () => {
    let open = 0;
    const { port } = await echoServer(
      {
        both: (call) => {
          open += 1;
          call.resume();
          call.on('end', () => call.end());
        },
      },
      { 'grpc.max_concurrent_streams': 10 },
    );
    const proxy = await startTcpProxy({ target: `127.0.0.1:${port}` });
    atEnd(() => proxy.close());
    const { listen } = await sidecar([], { 'fraud-api': `http://${proxy.address}` });
    const client = new EchoClient(listen);
    const calls = Array.from({ length: 35 }, () => {
      const call = client.both(new Metadata());
      return { call, ended: readAll(call) };
    });
    await eventually(() => open === 35);
    expect(proxy.connections()).toBe(4);
    for (const { call } of calls) call.end();
    for (const { ended } of calls) expect((await ended).code).toBe(Status.OK);
  });
});
