import { eventually, startTcpProxy } from '@bulwark/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { admin, cleanUp, fraudSpec, sidecar } from '../sidecar-fixture.js';
import {
  EchoClient,
  echoServer,
  failure,
  type Metadata,
  type ServiceError,
  metadataOf,
  readAll,
  Status,
} from './grpc-fixture.js';

afterEach(cleanUp);

const retrySpec = {
  target: { service: 'fraud-api' },
  timeout: { total: '5s' },
  // A gRPC call is a POST.
  retry: { maxAttempts: 3, methods: ['POST'], backoff: { base: '1ms', max: '2ms' } },
};

const fraudSpecOf = (total: string) => ({ ...fraudSpec, timeout: { total } });

const first = (metadata: Metadata, name: string) => metadata.get(name)[0];

interface PolicyState {
  readonly breakers: { state: string }[];
  readonly totals: Record<string, number> & { rejected: Record<string, number> };
}
const policyState = async (port: number): Promise<PolicyState> => {
  const { policies } = JSON.parse((await admin(port, '/state')).body) as { policies: PolicyState[] };
  const [policy] = policies;
  if (policy === undefined) throw new Error('no policy');
  return policy;
};

describe('the sidecar as a guard of gRPC', () => {
  it('opens the breaker by grpc-status, and rejects with UNAVAILABLE, the reason and a pushback', async () => {
    let calls = 0;
    const { url } = await echoServer({
      unary: (_call, done) => {
        calls += 1;
        done(failure(Status.UNAVAILABLE));
      },
    });
    const { listen } = await sidecar([fraudSpec], { 'fraud-api': url });
    const client = new EchoClient(listen);
    for (let count = 0; count < 3; count += 1) {
      const reply = await client.unary('x');
      expect([reply.code, reply.details]).toEqual([Status.UNAVAILABLE, 'broken']);
      expect(reply.trailers.get('bulwark-rejected')).toEqual([]);
    }
    const rejected = await client.unary('x');
    expect([rejected.code, rejected.details]).toEqual([
      Status.UNAVAILABLE,
      "This agent's own breaker for fraud-api (policy default/fraud-api) is open.",
    ]);
    expect(first(rejected.trailers, 'bulwark-rejected')).toBe('breaker-open');
    expect(Number(first(rejected.trailers, 'grpc-retry-pushback-ms'))).toBeGreaterThan(20_000);
    expect(calls).toBe(3);
  });

  it('tells a caller that is still sending why it is rejected', async () => {
    const { listen } = await sidecar([fraudSpec], { 'fraud-api': 'http://127.0.0.1:1' });
    const client = new EchoClient(listen);
    for (let count = 0; count < 3; count += 1) await client.unary('x');
    for (let count = 0; count < 20; count += 1) {
      const error = await new Promise<ServiceError | null>((resolve) => {
        const call = client.up((failed) => resolve(failed));
        const more = (): void => {
          while (call.writable && call.write(Buffer.alloc(100_000)));
          if (call.writable) call.once('drain', more);
        };
        more();
      });
      expect([error?.code, error?.metadata.get('bulwark-rejected')]).toEqual([
        Status.UNAVAILABLE,
        ['breaker-open'],
      ]);
    }
  });

  it('leaves the breaker alone for what the caller did wrong', async () => {
    const { url } = await echoServer({ unary: (_call, done) => done(failure(Status.INVALID_ARGUMENT)) });
    const { listen, admin: port } = await sidecar([fraudSpec], { 'fraud-api': url });
    const client = new EchoClient(listen);
    for (let count = 0; count < 5; count += 1) {
      expect((await client.unary('x')).code).toBe(Status.INVALID_ARGUMENT);
    }
    expect(await policyState(port)).toMatchObject({ breakers: [{ state: 'closed' }] });
  });

  it('retries a failing unary call with the same bytes, and marks the attempts', async () => {
    const seen: string[] = [];
    const { url } = await echoServer({
      unary: (call, done) => {
        seen.push(`${call.request.toString()} ${String(first(call.metadata, 'bulwark-attempt'))}`);
        // Headers of an answer that fails must not reach the caller.
        call.sendMetadata(metadataOf({ try: String(seen.length) }));
        if (seen.length < 3) done(failure(Status.UNAVAILABLE));
        else done(null, Buffer.from('well'));
      },
    });
    const { listen } = await sidecar([retrySpec], { 'fraud-api': url });
    const reply = await new EchoClient(listen).unary('q');
    expect([reply.code, reply.body, first(reply.headers, 'try')]).toEqual([Status.OK, 'well', '3']);
    expect(seen).toEqual(['q undefined', 'q 2', 'q 3']);
  });

  it('says that retries are used up, and makes one attempt for a caller that is itself retrying', async () => {
    let calls = 0;
    const { url } = await echoServer({
      unary: (_call, done) => {
        calls += 1;
        done(failure(Status.UNAVAILABLE, 'dead'));
      },
    });
    const { listen } = await sidecar([retrySpec], { 'fraud-api': url });
    const client = new EchoClient(listen);
    const reply = await client.unary('q');
    expect([reply.code, reply.details, calls]).toEqual([Status.UNAVAILABLE, 'dead', 3]);
    expect(first(reply.trailers, 'grpc-retry-pushback-ms')).toBe('-1');
    const again = await client.unary('q', { metadata: metadataOf({ 'bulwark-attempt': '2' }) });
    expect([again.code, calls]).toEqual([Status.UNAVAILABLE, 4]);
  });

  it('makes one attempt of a POST by default, and three with an idempotency key', async () => {
    let calls = 0;
    const { url } = await echoServer({
      unary: (_call, done) => {
        calls += 1;
        done(failure(Status.UNAVAILABLE));
      },
    });
    const { maxAttempts, backoff } = retrySpec.retry;
    const spec = { ...retrySpec, retry: { maxAttempts, backoff } };
    const { listen } = await sidecar([spec], { 'fraud-api': url });
    const client = new EchoClient(listen);
    await client.unary('q');
    expect(calls).toBe(1);
    await client.unary('q', { metadata: metadataOf({ 'idempotency-key': 'k1' }) });
    expect(calls).toBe(4);
  });

  it('waits as long as a pushback says, and not at all when it says never', async () => {
    const pushbacks = ['300', '-1'];
    const times: number[] = [];
    const { url } = await echoServer({
      unary: (_call, done) => {
        times.push(performance.now());
        const pushback = pushbacks[times.length - 1];
        if (pushback === undefined) done(null, Buffer.from('well'));
        else done(failure(Status.UNAVAILABLE, 'later', { 'grpc-retry-pushback-ms': pushback }));
      },
    });
    const { listen } = await sidecar([retrySpec], { 'fraud-api': url });
    const reply = await new EchoClient(listen).unary('q');
    expect([reply.code, times.length]).toEqual([Status.UNAVAILABLE, 2]);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(299);
    expect(first(reply.trailers, 'grpc-retry-pushback-ms')).toBe('-1');
  });

  it('neither retries nor counts a rejection that is relayed from below', async () => {
    let calls = 0;
    const { url } = await echoServer({
      unary: (_call, done) => {
        calls += 1;
        done(failure(Status.UNAVAILABLE, 'open below', { 'bulwark-rejected': 'breaker-open' }));
      },
    });
    const spec = { ...fraudSpec, retry: retrySpec.retry };
    const { listen, admin: port } = await sidecar([spec], { 'fraud-api': url });
    const client = new EchoClient(listen);
    for (let count = 0; count < 5; count += 1) {
      expect(first((await client.unary('x')).trailers, 'bulwark-rejected')).toBe('breaker-open');
    }
    expect(calls).toBe(5);
    expect(await policyState(port)).toMatchObject({ breakers: [{ state: 'closed' }] });
  });

  it('strips the marks of an upstream that is not trusted, and does not believe them', async () => {
    let calls = 0;
    const { url } = await echoServer({
      unary: (_call, done) => {
        calls += 1;
        done(failure(Status.UNAVAILABLE, 'lies', { 'bulwark-rejected': 'breaker-open', own: 'stays' }));
      },
    });
    const {
      listen,
      admin: port,
      logs,
    } = await sidecar([fraudSpec], { 'fraud-api': url }, ['--trusted-peers', 'none']);
    const client = new EchoClient(listen);
    for (let count = 0; count < 3; count += 1) {
      const { trailers } = await client.unary('x');
      expect([first(trailers, 'bulwark-rejected'), first(trailers, 'own')]).toEqual([undefined, 'stays']);
    }
    expect(calls).toBe(3);
    expect(logs.filter(({ message }) => message.includes('--trusted-peers'))).toMatchObject([
      { fields: { side: 'outbound', peer: '127.0.0.1' } },
    ]);
    expect(await policyState(port)).toMatchObject({ breakers: [{ state: 'open' }] });
  });

  it('refuses what a full bulkhead does not take with RESOURCE_EXHAUSTED, and holds a stream’s slot to its end', async () => {
    const open: (() => void)[] = [];
    const { url } = await echoServer({
      down: (call) => {
        call.write(Buffer.from('begun'));
        open.push(() => call.end());
      },
    });
    const spec = {
      target: { service: 'fraud-api' },
      timeout: { total: '30s' },
      bulkhead: { maxConcurrent: 2, maxQueued: 0 },
    };
    const { listen, admin: port } = await sidecar([spec], { 'fraud-api': url });
    const client = new EchoClient(listen);
    const streams = [readAll(client.down('a')), readAll(client.down('b'))];
    await eventually(() => open.length === 2);
    const refused = await readAll(client.down('c'));
    expect([refused.code, first(refused.trailers, 'bulwark-rejected')]).toEqual([
      Status.RESOURCE_EXHAUSTED,
      'bulkhead-full',
    ]);
    expect(refused.details).toContain('in flight 2 of 2');
    expect((await policyState(port)).totals['inFlight']).toBe(2);
    open.forEach((end) => end());
    expect((await Promise.all(streams)).map(({ code }) => code)).toEqual([Status.OK, Status.OK]);
    await eventually(async () => (await policyState(port)).totals['inFlight'] === 0);
    const after = client.down('d');
    const ended = readAll(after);
    await eventually(() => open.length === 3);
    open[2]?.();
    expect((await ended).code).toBe(Status.OK);
  });

  it('gives the next hop what is left of the smaller deadline, and ends the call by itself', async () => {
    const deadlines: number[] = [];
    let cancelled = 0;
    const { url } = await echoServer({
      unary: (call) => {
        deadlines.push(Number(call.getDeadline()) - Date.now());
        call.on('cancelled', () => (cancelled += 1));
      },
    });
    const spec = { target: { service: 'fraud-api' }, timeout: { total: '400ms' } };
    const { listen } = await sidecar([spec], { 'fraud-api': url });
    const client = new EchoClient(listen);
    const policys = await client.unary('x', { options: { deadline: Date.now() + 5_000 } });
    expect([policys.code, policys.trailers.get('bulwark-rejected')]).toEqual([Status.DEADLINE_EXCEEDED, []]);
    const callers = await client.unary('x', { options: { deadline: Date.now() + 150 } });
    expect(callers.code).toBe(Status.DEADLINE_EXCEEDED);
    expect(deadlines[0]).toBeLessThanOrEqual(400);
    expect(deadlines[0]).toBeGreaterThan(200);
    expect(deadlines[1]).toBeLessThanOrEqual(150);
    await eventually(() => cancelled === 2);
  });

  it('ends a stream that outlives its deadline with trailers after what has come', async () => {
    const { url } = await echoServer({ down: (call) => void call.write(Buffer.from('begun')) });
    const spec = { target: { service: 'fraud-api' }, timeout: { total: '300ms' } };
    const { listen } = await sidecar([spec], { 'fraud-api': url });
    const end = await readAll(new EchoClient(listen).down('x'));
    expect([end.code, end.messages]).toEqual([Status.DEADLINE_EXCEEDED, ['begun']]);
  });

  it('counts a dependency that hangs: the full timeout is its failure', async () => {
    const { url } = await echoServer({ unary: () => undefined });
    const { listen, admin: port } = await sidecar([fraudSpec], { 'fraud-api': url });
    const client = new EchoClient(listen);
    for (let count = 0; count < 3; count += 1) {
      expect((await client.unary('x')).code).toBe(Status.DEADLINE_EXCEEDED);
    }
    expect(await policyState(port)).toMatchObject({ breakers: [{ state: 'open' }] });
  });

  it('trips nothing by 2,000 calls with a deadline of 1 ms, nor ends the connection of others', async () => {
    let lost = 0;
    const { url } = await echoServer({
      unary: (call, done) => void setTimeout(() => done(null, call.request), 20),
      down: (call) => {
        call.write(Buffer.from('first'));
        call.on('cancelled', () => (lost += 1));
      },
    });
    const { listen, admin: port } = await sidecar([fraudSpecOf('60s')], { 'fraud-api': url });
    const client = new EchoClient(listen);
    const stream = client.down('stays open');
    stream.on('error', () => undefined);
    await new Promise((resolve) => stream.once('data', resolve));
    const codes = new Set<Status>();
    for (let round = 0; round < 20; round += 1) {
      // By metadata, so that the client does not end them by itself.
      const calls = Array.from({ length: 100 }, () =>
        client.unary('x', { metadata: metadataOf({ 'grpc-timeout': '1m' }) }),
      );
      for (const { code } of await Promise.all(calls)) codes.add(code);
    }
    expect([...codes]).toEqual([Status.DEADLINE_EXCEEDED]);
    const state = await policyState(port);
    expect(state.breakers).toMatchObject([{ state: 'closed' }]);
    expect(state.totals['calls']).toBe(2_001);
    expect((await client.unary('after')).code).toBe(Status.OK);
    expect(lost).toBe(0);
    stream.cancel();
  });

  it('counts a dead upstream as a connect fault, and says where it is not', async () => {
    const { listen, admin: port } = await sidecar([fraudSpec], { 'fraud-api': 'http://127.0.0.1:1' });
    const client = new EchoClient(listen);
    const reply = await client.unary('x');
    expect(reply.code).toBe(Status.UNAVAILABLE);
    expect(reply.details).toContain('no HTTP/2 connection to 127.0.0.1:1: ECONNREFUSED');
    await client.unary('x');
    await client.unary('x');
    expect(await policyState(port)).toMatchObject({ breakers: [{ state: 'open' }] });
  });

  it('finds an upstream again that came back', async () => {
    const dead = await echoServer({ unary: (call, done) => done(null, call.request) });
    const { listen } = await sidecar([], { 'fraud-api': dead.url });
    const client = new EchoClient(listen);
    expect((await client.unary('x')).code).toBe(Status.OK);
    dead.server.forceShutdown();
    await eventually(async () => (await client.unary('x')).code === Status.UNAVAILABLE);
    await echoServer({ unary: (call, done) => done(null, call.request) }, {}, dead.port);
    await eventually(async () => (await client.unary('x')).code === Status.OK);
  });

  it('ends a stream whose upstream dies with UNAVAILABLE after what has come, and counts a reset', async () => {
    const { port: target } = await echoServer({ down: (call) => void call.write(Buffer.from('begun')) });
    const proxy = await startTcpProxy({ target: `127.0.0.1:${target}` });
    const { listen, admin: port } = await sidecar([fraudSpec], {
      'fraud-api': `http://127.0.0.1:${proxy.port}`,
    });
    const client = new EchoClient(listen);
    for (let count = 0; count < 3; count += 1) {
      const stream = client.down('x');
      stream.once('data', () => proxy.reset());
      const end = await readAll(stream);
      expect([end.code, end.messages]).toEqual([Status.UNAVAILABLE, ['begun']]);
      expect(end.details).toContain('the connection to the upstream broke');
    }
    expect(await policyState(port)).toMatchObject({ breakers: [{ state: 'open' }] });
    await proxy.close();
  });

  it('does not repeat a call that has answered in part', async () => {
    let calls = 0;
    const { url } = await echoServer({
      down: (call) => {
        calls += 1;
        call.write(Buffer.from('part'));
        setTimeout(() => call.emit('error', failure(Status.UNAVAILABLE)), 20);
      },
    });
    const { listen } = await sidecar([retrySpec], { 'fraud-api': url });
    const end = await readAll(new EchoClient(listen).down('x'));
    expect([end.code, end.messages, calls]).toEqual([Status.UNAVAILABLE, ['part'], 1]);
    expect(end.trailers.get('grpc-retry-pushback-ms')).toEqual([]);
  });

  it('repeats a client stream that is small, and not one that is large', async () => {
    const sizes: number[] = [];
    const { url } = await echoServer({
      up: (call, done) => {
        let size = 0;
        call.on('data', (part: Buffer) => (size += part.length));
        call.on('end', () => {
          sizes.push(size);
          done(failure(Status.UNAVAILABLE));
        });
      },
    });
    const { listen } = await sidecar([retrySpec], { 'fraud-api': url });
    const client = new EchoClient(listen);
    const send = (parts: number, bytes: number) =>
      new Promise<void>((resolve) => {
        const call = client.up(() => resolve());
        for (let part = 0; part < parts; part += 1) call.write(Buffer.alloc(bytes));
        call.end();
      });
    await send(3, 1_000);
    expect(sizes).toEqual([3_000, 3_000, 3_000]);
    await send(10, 10_000);
    expect(sizes.slice(3)).toEqual([100_000]);
  });

  it('shows its calls in the metrics as calls by HTTP/1 are', async () => {
    const { url } = await echoServer({ unary: (call, done) => done(null, call.request) });
    const { listen, admin: port } = await sidecar([fraudSpec], { 'fraud-api': url });
    await new EchoClient(listen).unary('x');
    const { body } = await admin(port, '/metrics');
    expect(body).toContain('bulwark_calls_total{policy="default/fraud-api"} 1');
    expect(body).toContain('bulwark_call_duration_seconds_count{service="fraud-api",outcome="ok"} 1');
    await eventually(async () => (await admin(port, '/metrics')).body.includes('bulwark_proxy_in_flight 0'));
  });

  it('applies a policy that names the operation', async () => {
    const { url } = await echoServer({
      unary: (call, done) => done(null, call.request),
      down: (call) => call.end(),
    });
    const spec = { ...fraudSpec, target: { service: 'fraud-api', operations: ['demo.Echo/Unary'] } };
    const { listen, admin: port } = await sidecar([spec], { 'fraud-api': url });
    const client = new EchoClient(listen);
    await client.unary('x');
    await readAll(client.down('x'));
    expect((await policyState(port)).totals['calls']).toBe(1);
  });
});
