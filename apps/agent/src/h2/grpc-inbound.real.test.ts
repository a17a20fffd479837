import { eventually } from '@bulwark/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { admin, cleanUp, inbound, upstream, via, type Running } from '../sidecar-fixture.js';
import {
  EchoClient,
  echoServer,
  failure,
  type EchoHandlers,
  type Metadata,
  metadataOf,
  readAll,
  Status,
} from './grpc-fixture.js';

afterEach(cleanUp);

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const first = (metadata: Metadata, name: string) => metadata.get(name)[0];
const deadlineIn = (metadata: Metadata, deadline: Date | number) => ({
  attempt: first(metadata, 'bulwark-attempt'),
  leftMs: Number(deadline) - Date.now(),
});

const nextSpec = {
  target: { service: 'next' },
  timeout: { total: '5s' },
  retry: { maxAttempts: 3, methods: ['POST'], backoff: { base: '1ms', max: '2ms' } },
};

interface Service extends Running {
  readonly inbound: number;
  /** Calls its own handler saw. */
  readonly calls: () => number;
}

/**
 * A plain service that calls `next` by its sidecar and passes `traceparent` on, nothing else; its error is of its own
 * making.
 */
async function relay(next: string, specs: object[] = [nextSpec]): Promise<Service> {
  let calls = 0;
  const own: { client?: EchoClient } = {};
  const { url } = await echoServer({
    unary: (call, done) => {
      calls += 1;
      const traceparent = first(call.metadata, 'traceparent');
      void own.client
        ?.unary(call.request, { metadata: metadataOf({ traceparent: String(traceparent) }) })
        .then((reply) => {
          if (reply.code === Status.OK) done(null, Buffer.from(reply.body));
          else done(failure(reply.code, `relayed: ${reply.details}`));
        });
    },
  });
  const running = await inbound(url, specs, { next });
  own.client = new EchoClient(running.listen, 'next');
  return { ...running, calls: () => calls };
}

const at = (service: Service) => `http://127.0.0.1:${service.inbound}`;

describe('three plain gRPC services in a row, each behind its sidecar', () => {
  it('S4.10: the dead leaf sees 3 calls, though each layer has 3 attempts', async () => {
    let leafCalls = 0;
    const leaf = await echoServer({
      unary: (_call, done) => {
        leafCalls += 1;
        done(failure(Status.UNAVAILABLE, 'dead'));
      },
    });
    const third = await relay(leaf.url);
    const second = await relay(at(third));
    const front = await relay(at(second));
    const reply = await new EchoClient(front.inbound).unary('q');
    expect([reply.code, reply.details]).toEqual([Status.UNAVAILABLE, 'relayed: relayed: relayed: dead']);
    expect(first(reply.trailers, 'grpc-retry-pushback-ms')).toBe('-1');
    expect([leafCalls, third.calls(), second.calls(), front.calls()]).toEqual([3, 1, 1, 1]);
  });

  it('C127: a leaf that never answers is cut off along the whole row by the first caller’s deadline', async () => {
    let leftMs = 0;
    let cancelled = false;
    const leaf = await echoServer({
      unary: (call) => {
        leftMs = Number(call.getDeadline()) - Date.now();
        call.on('cancelled', () => (cancelled = true));
      },
    });
    const second = await relay(leaf.url);
    const front = await relay(at(second));
    const began = performance.now();
    const reply = await new EchoClient(front.inbound).unary('q', { options: { deadline: Date.now() + 400 } });
    expect(reply.code).toBe(Status.DEADLINE_EXCEEDED);
    expect(performance.now() - began).toBeLessThan(1_500);
    await eventually(() => cancelled);
    expect(leftMs).toBeGreaterThan(50);
    expect(leftMs).toBeLessThanOrEqual(400);
  });

  it('hands attempt numbers down and degraded members up, over gRPC and HTTP/1 alike', async () => {
    const attempts: unknown[] = [];
    const leaf = await upstream((request, response) => {
      attempts.push(request.headers['bulwark-attempt']);
      response.setHeader(
        'Bulwark-Degraded',
        'static;upstream="stock";reason="failure";age=0;policy="shop/stock@1"',
      );
      response.end('by http');
    });
    let listen = 0;
    const app = await echoServer({
      unary: (call, done) => {
        const traceparent = String(first(call.metadata, 'traceparent'));
        via(listen, 'http://next/stock', { headers: { traceparent } }).then(
          (reply) => done(null, Buffer.from(reply.body)),
          (error: Error) => done(failure(Status.INTERNAL, error.message)),
        );
      },
    });
    const running = await inbound(app.url, [], { next: leaf });
    ({ listen } = running);
    const metadata = metadataOf({ traceparent: TRACE, 'bulwark-attempt': '2' });
    const reply = await new EchoClient(running.inbound).unary('q', { metadata });
    expect([reply.code, reply.body, attempts]).toEqual([Status.OK, 'by http', ['2']]);
    expect(first(reply.trailers, 'bulwark-degraded')).toBe(
      'static;upstream="stock";reason="failure";age=0;policy="shop/stock@1"',
    );
  });

  it('joins an inbound call by HTTP/1 with the outbound gRPC call made for it', async () => {
    const seen: { attempt: unknown; leftMs: number }[] = [];
    const leaf = await echoServer({
      unary: (call, done) => {
        seen.push(deadlineIn(call.metadata, call.getDeadline()));
        done(failure(Status.UNAVAILABLE));
      },
    });
    const own: { client?: EchoClient } = {};
    const app = await upstream((request, response) => {
      const metadata = metadataOf({ traceparent: String(request.headers['traceparent']) });
      void own.client?.unary('q', { metadata }).then((reply) => {
        response.statusCode = reply.code === Status.OK ? 200 : 503;
        response.end();
      });
    });
    const running = await inbound(app, [nextSpec], { next: leaf.url });
    own.client = new EchoClient(running.listen, 'next');
    const origin = `http://127.0.0.1:${running.inbound}/x`;
    const marked = await fetch(origin, { headers: { 'bulwark-deadline': '3000', 'bulwark-attempt': '2' } });
    expect([marked.status, seen.length, seen[0]?.attempt]).toEqual([503, 1, '2']);
    expect(seen[0]?.leftMs).toBeLessThanOrEqual(3_000);
    expect(seen[0]?.leftMs).toBeGreaterThan(1_500);
    const plain = await fetch(origin);
    expect([plain.status, plain.headers.get('bulwark-retry'), seen.length]).toEqual([503, 'exhausted', 4]);
  });
});

describe('the inbound side for gRPC', () => {
  const plain: EchoHandlers = {
    unary: (call, done) => done(null, Buffer.from(JSON.stringify(call.metadata.getMap()))),
    both: (call) => {
      call.on('data', (part: Buffer) => call.write(part));
      call.on('end', () => call.end());
    },
  };

  it('passes calls to the service with who calls, and begins a trace where there is none', async () => {
    const { url } = await echoServer(plain);
    const running = await inbound(url);
    const client = new EchoClient(running.inbound);
    const seen = JSON.parse((await client.unary('x')).body) as Record<string, string>;
    expect(seen['x-forwarded-for']).toBe('127.0.0.1');
    expect(seen['traceparent']).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
    const kept = JSON.parse(
      (await client.unary('x', { metadata: metadataOf({ traceparent: TRACE }) })).body,
    ) as object;
    expect(kept).toMatchObject({ traceparent: TRACE });
    const both = client.both();
    const ended = readAll(both);
    both.write(Buffer.from('a'));
    both.end();
    expect((await ended).messages).toEqual(['a']);
    const { body } = await admin(running.admin, '/metrics');
    expect(body).toMatch(/bulwark_inbound_\S+_count\{outcome="ok"\} 3/);
  });

  it('believes and relays no marks of callers that are not trusted, but their deadline', async () => {
    const { url } = await echoServer({
      unary: (call, done) => {
        const seen = { ...call.metadata.getMap(), leftMs: Number(call.getDeadline()) - Date.now() };
        done(
          null,
          Buffer.from(JSON.stringify(seen)),
          metadataOf({ 'bulwark-degraded': 'static', own: 'stays' }),
        );
      },
    });
    const running = await inbound(url, [], {}, ['--trusted-peers', 'none']);
    const reply = await new EchoClient(running.inbound).unary('x', {
      metadata: metadataOf({ 'bulwark-attempt': '4', 'idempotency-key': 'k' }),
      options: { deadline: Date.now() + 5_000 },
    });
    const seen = JSON.parse(reply.body) as Record<string, unknown>;
    expect([seen['bulwark-attempt'], seen['idempotency-key']]).toEqual([undefined, 'k']);
    expect(seen['leftMs']).toBeLessThanOrEqual(5_000);
    expect([first(reply.trailers, 'bulwark-degraded'), first(reply.trailers, 'own')]).toEqual([
      undefined,
      'stays',
    ]);
  });

  it('ends a call whose time is over with DEADLINE_EXCEEDED that is nobody’s failure', async () => {
    let cancelled = false;
    const { url } = await echoServer({
      unary: (call) => void call.on('cancelled', () => (cancelled = true)),
    });
    const running = await inbound(url);
    // By metadata, so that the client does not end the call by itself.
    const reply = await new EchoClient(running.inbound).unary('x', {
      metadata: metadataOf({ 'grpc-timeout': '100m' }),
    });
    expect([reply.code, first(reply.trailers, 'bulwark-rejected')]).toEqual([
      Status.DEADLINE_EXCEEDED,
      'deadline',
    ]);
    await eventually(() => cancelled);
    const late = await new EchoClient(running.inbound).unary('x', {
      metadata: metadataOf({ 'grpc-timeout': '0m' }),
    });
    expect(late.details).toContain('the service was not called');
  });

  it('says that the service is not there, and passes on when it is', async () => {
    const gone = await inbound('http://127.0.0.1:1');
    const reply = await new EchoClient(gone.inbound).unary('x');
    expect([reply.code, reply.details]).toEqual([
      Status.UNAVAILABLE,
      'The service storefront could not be called: no HTTP/2 connection to 127.0.0.1:1: ECONNREFUSED.',
    ]);
  });

  it('says so when the service speaks HTTP/1.1 only', async () => {
    const url = await upstream((_request, response) => response.end('http1'));
    const running = await inbound(url);
    const reply = await new EchoClient(running.inbound).unary('x');
    expect(reply.code).toBe(Status.UNAVAILABLE);
    expect(reply.details).toContain('no HTTP/2 connection');
    expect((await fetch(`http://127.0.0.1:${running.inbound}/`)).status).toBe(200);
  });

  it('cancels the service’s call when the caller goes away', async () => {
    let begun = false;
    let cancelled = false;
    const { url } = await echoServer({
      unary: (call) => {
        begun = true;
        call.on('cancelled', () => (cancelled = true));
      },
    });
    const running = await inbound(url);
    const abort = new AbortController();
    const reply = new EchoClient(running.inbound).unary('x', { abort });
    await eventually(() => begun);
    abort.abort();
    expect((await reply).code).toBe(Status.CANCELLED);
    await eventually(() => cancelled);
    await eventually(async () =>
      /outcome="cancelled"\} 1/.test((await admin(running.admin, '/metrics')).body),
    );
  });
});
