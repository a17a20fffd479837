import { silentLogger } from '@bulwark/agent';
import { eventually, freePort, temporaryDirectory } from '@bulwark/testing';
import { writeFileSync } from 'node:fs';
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type RequestListener,
} from 'node:http';
import { connect as tcpConnect, createServer as createTcpServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { runSidecar, type SidecarIo } from './index.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Running {
  readonly listen: number;
  readonly admin: number;
  readonly signal: (name?: string) => void;
  readonly exit: Promise<number>;
  readonly logs: { message: string; fields: object }[];
}

/** A sidecar in this process, with policies from a bootstrap file and a control plane that is not there. */
async function sidecar(
  policies: object[],
  upstreams: Record<string, string>,
  more: string[] = [],
): Promise<Running> {
  const directory = temporaryDirectory('sidecar');
  cleanups.push(() => directory.remove());
  const bootstrap = join(directory.path, 'policies.json');
  writeFileSync(
    bootstrap,
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...policies, unusedSpec].map(asPolicy) }),
  );
  const argv = [
    ...['--service', 'storefront', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'],
    ...['--control-plane', `127.0.0.1:${await freePort()}`, '--bootstrap', bootstrap],
    ...Object.entries(upstreams).flatMap(([name, url]) => ['--upstream', `${name}=${url}`]),
    ...more,
  ];
  const logs: Running['logs'] = [];
  let listener: (signal: string) => void = () => undefined;
  const ports = await new Promise<{ listen: number; admin: number; exit: Promise<number> }>(
    (resolve, reject) => {
      const exit = runSidecar(
        argv,
        {},
        {
          ...quiet(logs),
          err: (text) => reject(new Error(text)),
          onSignal: (heard) => {
            listener = heard;
            return () => undefined;
          },
          onListening: (bound) => queueMicrotask(() => resolve({ ...bound, exit })),
        },
      );
      exit.catch(reject);
    },
  );
  const signal = (name = 'SIGTERM') => listener(name);
  let over = false;
  void ports.exit.then(() => {
    over = true;
  });
  cleanups.push(async () => {
    if (!over) signal();
    if (!over) signal();
    await ports.exit;
  });
  return { ...ports, signal, logs };
}

function quiet(logs: Running['logs'] = []): SidecarIo {
  const line = (fields: object, message: string) => void logs.push({ message, fields });
  const logger = { ...silentLogger, info: line, warn: line, error: line, child: () => logger };
  return { logger, out: () => undefined, err: () => undefined, onSignal: () => () => undefined };
}

const asPolicy = (spec: object) => ({
  apiVersion: 'bulwark.dev/v1',
  kind: 'ResiliencePolicy',
  metadata: { name: (spec as { target: { service: string } }).target.service },
  spec,
});

async function upstream(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly trailers: NodeJS.Dict<string>;
}

const agent = new Agent({ keepAlive: true, maxSockets: 500 });

/** As curl -x does it: absolute form to the proxy. */
function via(
  port: number,
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string; signal?: AbortSignal } = {},
): Promise<Reply> {
  const { body, ...rest } = options;
  return new Promise((resolve, reject) => {
    const call = httpRequest(
      {
        host: '127.0.0.1',
        port,
        path: url,
        agent,
        ...rest,
        headers: { host: new URL(url).host, ...rest.headers },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
            trailers: response.trailers,
          }),
        );
      },
    );
    call.on('error', reject);
    call.end(body);
  });
}

const admin = async (port: number, path: string) => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return { status: response.status, body: await response.text() };
};

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

/** A policy for a service that no test calls: calls of others pass unguarded. */
const unusedSpec = { target: { service: 'unused' }, timeout: { total: '1s' } };

const fraudSpec = {
  target: { service: 'fraud-api' },
  timeout: { attempt: '200ms', total: '1s' },
  circuitBreaker: {
    scope: 'Instance',
    trip: { consecutiveFailures: 3 },
    cooldown: { initial: '30s' },
  },
};

describe('the sidecar as a proxy', () => {
  it('passes a call on in absolute form and by Host header, with the headers a proxy should leave and take', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const url = await upstream((request, response) => {
      seen.push(request.headers);
      response.writeHead(201, { 'X-Up': 'yes', Connection: 'X-Hop, keep-alive', 'X-Hop': '1' });
      response.end(`${request.method} ${request.url}`);
    });
    const { listen } = await sidecar([], { 'fraud-api': url });
    const reply = await via(listen, 'http://fraud-api/check?id=1', {
      headers: { 'proxy-connection': 'keep-alive', connection: 'x-private', 'x-private': '1', 'x-kept': '2' },
    });
    expect(reply).toMatchObject({ status: 201, body: 'GET /check?id=1' });
    expect(reply.headers).toMatchObject({
      'x-up': 'yes',
      via: expect.stringMatching(/^1\.1 bulwark-/) as string,
    });
    expect(reply.headers['x-hop']).toBeUndefined();
    expect(seen[0]).toMatchObject({
      host: 'fraud-api',
      'x-kept': '2',
      via: expect.stringMatching(/^1\.1 bulwark-/) as string,
    });
    expect(seen[0]).not.toHaveProperty('x-private');
    expect(seen[0]).not.toHaveProperty('proxy-connection');
    const byHost = await via(listen, 'http://fraud-api/plain');
    expect(byHost.body).toBe('GET /plain');
  });

  it('streams bodies both ways and keeps trailers', async () => {
    const url = await upstream((request, response) => {
      response.writeHead(200, { Trailer: 'X-Sum' });
      let bytes = 0;
      request.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        response.write(chunk);
      });
      request.on('end', () => {
        response.addTrailers({ 'X-Sum': String(bytes) });
        response.end();
      });
    });
    const { listen } = await sidecar([fraudSpec], { 'fraud-api': url });
    const body = 'x'.repeat(1_000_000);
    const chunked = { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body };
    for (const options of [{ method: 'POST', body }, chunked]) {
      const reply = await via(listen, 'http://fraud-api/echo', options);
      expect(reply.body.length).toBe(1_000_000);
      expect(reply.trailers).toEqual({ 'x-sum': '1000000' });
    }
  });

  it('answers 502 with a problem when nobody listens, and dials unknown names as they are', async () => {
    const { listen } = await sidecar([], { 'fraud-api': `http://127.0.0.1:${await freePort()}` });
    const reply = await via(listen, 'http://fraud-api/x');
    expect(reply.status).toBe(502);
    expect(JSON.parse(reply.body)).toMatchObject({ status: 502, service: 'fraud-api' });
    const url = await upstream((_request, response) => response.end('direct'));
    expect((await via(listen, `${url}/y`)).body).toBe('direct');
  });

  it('refuses to call itself, to tunnel, and what is no target', async () => {
    const { listen } = await sidecar([], {});
    expect((await via(listen, `http://127.0.0.1:${listen}/x`)).status).toBe(421);
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = tcpConnect(listen, '127.0.0.1', () =>
        socket.write('CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'),
      );
      let text = '';
      socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
      socket.on('end', () => resolve(text));
      socket.on('error', reject);
    });
    expect(answer).toMatch(/^HTTP\/1\.1 501 /);
    expect(answer).toContain('--upstream');
  });

  it('notices that a call came back to it through another proxy', async () => {
    const port = await freePort();
    const second = await sidecar([], { x: `http://127.0.0.1:${port}` });
    const first = await sidecar([], { x: `http://127.0.0.1:${second.listen}` }, [
      '--listen',
      `127.0.0.1:${port}`,
    ]);
    const reply = await via(first.listen, 'http://x/y');
    expect(reply.status).toBe(508);
    expect(reply.body).toContain('came back');
  });

  it('cancels the upstream when the caller goes away, and nobody is to blame', async () => {
    let closed = 0;
    const url = await upstream((_request, response) => void response.once('close', () => (closed += 1)));
    const running = await sidecar([{ ...fraudSpec, timeout: { total: '20s' } }], { 'fraud-api': url });
    const gone = new AbortController();
    const call = via(running.listen, 'http://fraud-api/slow', { signal: gone.signal }).catch(() => 'gone');
    await eventually(async () => (await admin(running.admin, '/state')).body.includes('"inFlight": 1'));
    gone.abort();
    expect(await call).toBe('gone');
    await eventually(() => closed === 1);
    const state = await admin(running.admin, '/state');
    expect(JSON.parse(state.body)).toMatchObject({ policies: [{ totals: { cancelled: 1, failed: 0 } }, {}] });
  });

  it('cuts an answer that breaks off, so that a half one never looks whole', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf');
        setTimeout(() => socket.destroy(), 20);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => new Promise((resolve) => server.close(resolve)));
    const { port } = server.address() as AddressInfo;
    const { listen } = await sidecar([fraudSpec], { 'fraud-api': `http://127.0.0.1:${port}` });
    await expect(via(listen, 'http://fraud-api/x')).rejects.toThrow();
  });
});

describe('the sidecar as a guard', () => {
  it('rejects in well under 5 ms once the breaker is open, and leaves the upstream beside it alone', async () => {
    let calls = 0;
    const fraud = await upstream((_request, response) => {
      calls += 1;
      response.statusCode = 500;
      response.end('broken');
    });
    const payments = await upstream((_request, response) => response.end('paid'));
    const { listen } = await sidecar(
      [fraudSpec, { target: { service: 'payments' }, timeout: { total: '1s' } }],
      {
        'fraud-api': fraud,
        payments,
      },
    );
    for (let count = 0; count < 3; count += 1) {
      const reply = await via(listen, 'http://fraud-api/check');
      expect([reply.status, reply.body]).toEqual([500, 'broken']);
    }
    const times: number[] = [];
    for (let count = 0; count < 200; count += 1) {
      const began = performance.now();
      const reply = await via(listen, 'http://fraud-api/check');
      times.push(performance.now() - began);
      expect(reply.status).toBe(503);
      expect(reply.headers).toMatchObject({
        'bulwark-rejected': 'breaker-open',
        'content-type': 'application/problem+json',
      });
      expect(Number(reply.headers['retry-after'])).toBeGreaterThanOrEqual(25);
    }
    expect(calls).toBe(3);
    expect(median(times)).toBeLessThan(5);
    expect((await via(listen, 'http://payments/pay')).body).toBe('paid');
  });

  it('serves the last good answer with its age and reason, then the static one for what it never saw', async () => {
    let down = false;
    const url = await upstream((request, response) => {
      if (down) response.statusCode = 503;
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ path: request.url }));
    });
    const spec = {
      ...fraudSpec,
      fallback: [{ lastGood: { maxAge: '120s' } }, { static: { status: 200, body: '{"items": []}' } }],
    };
    const { listen } = await sidecar([spec], { 'fraud-api': url });
    const fresh = await via(listen, 'http://fraud-api/recs');
    expect([fresh.status, fresh.headers['bulwark-degraded']]).toEqual([200, undefined]);
    down = true;
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const degraded = await via(listen, 'http://fraud-api/recs', { headers: { traceparent } });
    expect([degraded.status, degraded.body]).toEqual([200, '{"path":"/recs"}']);
    expect(degraded.headers['bulwark-degraded']).toBe(
      'last-good;upstream="fraud-api";reason="failure";age=0;policy="default/fraud-api@0";trace="0af7651916cd43dd8448eb211c80319c"',
    );
    expect(degraded.headers).toMatchObject({ age: '0', 'content-type': 'application/json' });
    const unseen = await via(listen, 'http://fraud-api/other');
    expect([unseen.status, unseen.body]).toEqual([200, '{"items": []}']);
    expect(unseen.headers['bulwark-degraded']).toMatch(/^static;upstream="fraud-api"/);
    const another = await via(listen, 'http://fraud-api/recs', {
      headers: { authorization: 'Bearer other' },
    });
    expect(another.headers['bulwark-degraded']).toMatch(/^static;/);
  });

  it('lets at most ten of 200 slow calls through, refuses the rest in time, and keeps the others fast (S5)', async () => {
    let inFlight = 0;
    let peak = 0;
    const fraud = await upstream((_request, response) => {
      inFlight += 1;
      peak = Math.max(peak, inFlight);
      response.once('close', () => (inFlight -= 1));
    });
    const payments = await upstream((_request, response) => response.end('paid'));
    const { listen } = await sidecar(
      [
        {
          target: { service: 'fraud-api' },
          timeout: { total: '30s' },
          bulkhead: { maxConcurrent: 10, maxQueued: 190, maxWait: '1s' },
        },
        {
          target: { service: 'payments' },
          timeout: { total: '5s' },
          bulkhead: { maxConcurrent: 20, maxQueued: 0 },
        },
      ],
      { 'fraud-api': fraud, payments },
    );
    const gone = new AbortController();
    const began = performance.now();
    const slow = Array.from({ length: 200 }, () =>
      via(listen, 'http://fraud-api/check', { signal: gone.signal }).then(
        (reply) => ({ ...reply, ms: performance.now() - began }),
        () => undefined,
      ),
    );
    await eventually(() => inFlight === 10);
    const paid: number[] = [];
    for (let count = 0; count < 50; count += 1) {
      const at = performance.now();
      expect((await via(listen, 'http://payments/pay')).body).toBe('paid');
      paid.push(performance.now() - at);
    }
    expect(median(paid)).toBeLessThan(50);
    const first = await Promise.race(slow);
    expect(first?.status).toBe(503);
    const timer = setTimeout(() => gone.abort(), 1_500);
    const replies = (await Promise.all(slow)).filter((reply) => reply !== undefined);
    clearTimeout(timer);
    expect(replies).toHaveLength(190);
    expect(peak).toBe(10);
    for (const reply of replies) {
      expect(reply.headers['bulwark-rejected']).toBe('bulkhead-timeout');
      expect(reply.body).toContain('in flight 10 of 10');
      expect(reply.ms).toBeLessThan(2_000);
    }
    await eventually(() => inFlight === 0);
  });

  it('lets a dead leaf see three calls through three sidecars of three attempts', async () => {
    let leafCalls = 0;
    const leaf = await upstream((_request, response) => {
      leafCalls += 1;
      response.statusCode = 503;
      response.end();
    });
    const spec = {
      target: { service: 'next' },
      timeout: { total: '5s' },
      retry: { maxAttempts: 3, backoff: { base: '1ms', max: '2ms' } },
    };
    let next = leaf;
    for (let layer = 0; layer < 3; layer += 1) {
      const { listen } = await sidecar([spec], { next });
      next = `http://127.0.0.1:${listen}`;
    }
    const reply = await via(Number(new URL(next).port), 'http://next/x');
    expect([reply.status, reply.headers['bulwark-retry'], leafCalls]).toEqual([503, 'exhausted', 3]);
  });
});

describe('the sidecar’s life', () => {
  it('says what it is doing at its admin port', async () => {
    const url = await upstream((_request, response) => response.end('ok'));
    const running = await sidecar([fraudSpec], { 'fraud-api': url });
    await via(running.listen, 'http://fraud-api/x');
    expect(await admin(running.admin, '/healthz')).toMatchObject({ status: 200 });
    const ready = await admin(running.admin, '/readyz');
    expect(ready.status).toBe(200);
    expect(ready.body).toContain('not connected to the control plane');
    const { body } = await admin(running.admin, '/metrics');
    expect(body).toContain('bulwark_calls_total{policy="default/fraud-api"} 1');
    expect(body).toContain('bulwark_call_attempts_total{policy="default/fraud-api",attempt="first"} 1');
    expect(body).toMatch(
      /bulwark_breaker_state\{policy="default\/fraud-api",key="target",state="closed",scope="local"\} 1/,
    );
    expect(body).toContain('bulwark_call_duration_seconds_count{service="fraud-api",outcome="ok"} 1');
    expect(body).toContain('bulwark_control_plane_connected 0');
    expect((await admin(running.admin, '/nothing')).body).toContain('/state');
  });

  it('drains on SIGTERM: readiness off, new calls refused, accepted ones answered, exit 0', async () => {
    let release: () => void = () => undefined;
    const url = await upstream((_request, response) => (release = () => response.end('late')));
    const running = await sidecar([], { 'fraud-api': url });
    const accepted = via(running.listen, 'http://fraud-api/slow');
    await eventually(async () =>
      (await admin(running.admin, '/metrics')).body.includes('bulwark_proxy_in_flight 1'),
    );
    running.signal();
    expect((await admin(running.admin, '/readyz')).status).toBe(503);
    const refused = await via(running.listen, 'http://fraud-api/new');
    expect([refused.status, refused.headers.connection]).toEqual([503, 'close']);
    release();
    expect((await accepted).body).toBe('late');
    expect(await running.exit).toBe(0);
    expect(running.logs.at(-1)).toMatchObject({
      fields: { accepted: 1, completed: 1, refused: 1, unfinished: 0 },
    });
  });

  it('exits 1 and says how many were cut off when the deadline passes', async () => {
    const url = await upstream(() => undefined);
    const running = await sidecar([], { 'fraud-api': url }, ['--drain-timeout', '100ms']);
    const accepted = via(running.listen, 'http://fraud-api/never').catch(() => 'cut');
    await eventually(async () =>
      (await admin(running.admin, '/metrics')).body.includes('bulwark_proxy_in_flight 1'),
    );
    running.signal();
    expect(await running.exit).toBe(1);
    expect(await accepted).toBe('cut');
    expect(running.logs.at(-1)).toMatchObject({ fields: { accepted: 1, completed: 0, unfinished: 1 } });
  });

  it('ends at once at a second signal', async () => {
    const url = await upstream(() => undefined);
    const running = await sidecar([], { 'fraud-api': url });
    const accepted = via(running.listen, 'http://fraud-api/never').catch(() => 'cut');
    await eventually(async () =>
      (await admin(running.admin, '/metrics')).body.includes('bulwark_proxy_in_flight 1'),
    );
    running.signal();
    running.signal('SIGINT');
    expect(await running.exit).toBe(1);
    agent.destroy();
    expect(await accepted).toBe('cut');
  });

  it('says which port is taken and which flag changes it', async () => {
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => new Promise((resolve) => blocker.close(resolve)));
    const { port } = blocker.address() as AddressInfo;
    for (const flag of ['--listen', '--admin']) {
      let said = '';
      const rest = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
      rest[rest.indexOf(flag) + 1] = `127.0.0.1:${port}`;
      const io = { ...quiet(), err: (text: string) => (said += text) };
      expect(await runSidecar(['--service', 's', ...rest], {}, io)).toBe(1);
      expect(said).toContain(`port ${port} on 127.0.0.1 is taken`);
      expect(said).toContain(flag);
    }
  });

  it('exits 64 with every problem and a hint when it is used wrongly', async () => {
    let said = '';
    const io = { ...quiet(), err: (text: string) => (said += text) };
    const argv = ['--service', 'Store Front', '--control-plane', 'nowhere', '--namespace', 'a/b'];
    expect(await runSidecar(argv, {}, io)).toBe(64);
    expect(said).toMatch(/"a\/b"[\s\S]*"Store Front"[\s\S]*"nowhere"[\s\S]*--help/);
    said = '';
    expect(
      await runSidecar(
        ['--service', 's', '--bootstrap', '/nothing/here'],
        {},
        { ...io, logger: quiet().logger },
      ),
    ).toBe(64);
    expect(said).toContain('bootstrap /nothing/here');
  });
});
