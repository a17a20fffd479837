import { eventually, freePort } from '@bulwark/testing';
import { request as httpRequest, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { admin, cleanUp, inbound, send, upstream, via } from './sidecar-fixture.js';

afterEach(cleanUp);

/** Three attempts, and time enough. */
const next = {
  target: { service: 'next' },
  timeout: { total: '20s' },
  retry: { maxAttempts: 3, backoff: { base: '1ms', max: '2ms' } },
};

/**
 * A service that knows nothing of Bulwark: it calls `next` through its proxy, passes `traceparent` on and nothing else, and
 * answers 502 when its call fails.
 */
function plainService(
  proxyPort: () => number,
  { propagates = true, hears = (_: IncomingHttpHeaders) => {} } = {},
) {
  const listener: RequestListener = (request, response) => {
    hears(request.headers);
    const { traceparent } = request.headers;
    const headers = { host: 'next', ...(propagates && traceparent !== undefined && { traceparent }) };
    const call = httpRequest(
      { host: '127.0.0.1', port: proxyPort(), path: 'http://next/x', headers, agent: false },
      (answer) => {
        answer.resume();
        answer.on('end', () => {
          response.statusCode = (answer.statusCode ?? 500) >= 500 ? 502 : 200;
          response.end('from the service');
        });
        answer.on('error', () => response.destroy());
      },
    );
    call.on('error', () => {
      response.statusCode = 502;
      response.end('the call broke');
    });
    call.end();
  };
  return listener;
}

interface LayerOptions {
  readonly policies?: object[];
  readonly propagates?: boolean;
  readonly hears?: (headers: IncomingHttpHeaders) => void;
  readonly flags?: string[];
}

/** A plain service with a sidecar on both its sides; its `next` is at `url`. Answers the sidecar's ports. */
async function layer(url: string, { policies = [next], flags = [], ...service }: LayerOptions = {}) {
  let proxyPort = 0;
  const app = await upstream(plainService(() => proxyPort, service));
  const sides = await inbound(app, policies, { next: url }, flags);
  proxyPort = sides.listen;
  return { ...sides, url: `http://127.0.0.1:${sides.inbound}` };
}

/** A leaf that is dead, and how often it was called. */
async function deadLeaf() {
  const leaf = { calls: 0, url: '' };
  leaf.url = await upstream((_request, response) => {
    leaf.calls += 1;
    response.statusCode = 503;
    response.end();
  });
  return leaf;
}

describe('three plain services in a row, each behind its sidecar', () => {
  it('S4.10: the dead leaf sees 3 calls, though each layer has 3 attempts', async () => {
    const leaf = await deadLeaf();
    const third = await layer(leaf.url);
    const second = await layer(third.url);
    const first = await layer(second.url);
    const reply = await send(first.inbound, '/');
    expect([reply.status, reply.headers['bulwark-retry'], leaf.calls]).toEqual([502, 'exhausted', 3]);
    const { body } = await admin(third.admin, '/metrics');
    expect(body).toContain('bulwark_join_lookups_total{found="parent"} 1');
    expect(body).toContain('bulwark_join_calls_in_flight 0');
  });

  it('S4.10: a service that does not pass traceparent on is not joined, and retries multiply above it', async () => {
    const leaf = await deadLeaf();
    const third = await layer(leaf.url);
    const second = await layer(third.url, { propagates: false });
    const reply = await send(second.inbound, '/');
    expect([reply.status, reply.headers['bulwark-retry']]).toEqual([502, undefined]);
    expect(leaf.calls).toBe(3);
    const first = await layer(second.url);
    await send(first.inbound, '/');
    expect(leaf.calls).toBe(3 + 9);
  });

  it('S4.10: a caller that is at its second attempt already makes each layer make one', async () => {
    const leaf = await deadLeaf();
    const second = await layer((await layer(leaf.url)).url);
    await send(second.inbound, '/', { headers: { 'bulwark-attempt': '2' } });
    expect(leaf.calls).toBe(1);
  });

  it('the deadline shrinks along the way, and each layer keeps the smaller one', async () => {
    const heard: number[] = [];
    const hears = (headers: IncomingHttpHeaders) => void heard.push(Number(headers['bulwark-deadline']));
    const leaf = await upstream((request, response) => {
      hears(request.headers);
      response.end();
    });
    const third = await layer(leaf, { hears, policies: [{ ...next, timeout: { total: '3s' } }] });
    const second = await layer(third.url, { hears });
    const first = await layer(second.url, { hears });
    const reply = await send(first.inbound, '/', { headers: { 'bulwark-deadline': '9000' } });
    expect(reply.status).toBe(200);
    expect(heard).toHaveLength(4);
    const [atFirst = 0, atSecond = 0, atThird = 0, atLeaf = 0] = heard;
    expect(atFirst).toBeLessThanOrEqual(9_000);
    expect(atSecond).toBeLessThan(atFirst);
    expect(atThird).toBeLessThan(atSecond);
    expect(atThird).toBeGreaterThan(3_000);
    expect(atLeaf).toBeLessThanOrEqual(3_000);
  });

  it('a leaf that never answers is cut off along the whole row by the first caller’s deadline', async () => {
    let closed = 0;
    const leaf = await upstream((_request, response) => void response.once('close', () => (closed += 1)));
    const third = await layer(leaf);
    const second = await layer(third.url);
    const first = await layer(second.url);
    const began = performance.now();
    const reply = await send(first.inbound, '/', { headers: { 'bulwark-deadline': '400' } });
    expect(performance.now() - began).toBeLessThan(3_000);
    expect([502, 504]).toContain(reply.status);
    await eventually(() => closed === 1);
    for (const { admin: port } of [first, second, third]) {
      await eventually(async () =>
        (await admin(port, '/metrics')).body.includes('bulwark_inbound_in_flight 0'),
      );
    }
  });

  it('S4.7: what a service still calls when its caller has given up reaches nobody', async () => {
    let calls = 0;
    const leaf = await upstream((_request, response) => {
      calls += 1;
      response.end();
    });
    let proxyPort = 0;
    const service = plainService(() => proxyPort);
    const slow = await upstream(
      (request, response) => void setTimeout(() => service(request, response), 200),
    );
    const sides = await inbound(slow, [next], { next: leaf });
    proxyPort = sides.listen;
    const reply = await send(sides.inbound, '/', { headers: { 'bulwark-deadline': '100' } });
    expect(reply.status).toBe(504);
    await eventually(async () =>
      (await admin(sides.admin, '/metrics')).body.includes('bulwark_join_lookups_total{found="late"} 1'),
    );
    await eventually(async () =>
      (await admin(sides.admin, '/metrics')).body.includes('bulwark_proxy_in_flight 0'),
    );
    expect(calls).toBe(0);
  });

  it('an answer that a level below had to simplify is marked at every level above, each level once', async () => {
    const dead = `http://127.0.0.1:${await freePort()}`;
    const fallback = [{ static: { status: 200, body: '{}' } }];
    const third = await layer(dead, { policies: [{ target: { service: 'next' }, fallback }] });
    const second = await layer(third.url);
    const first = await layer(second.url);
    for (const { inbound: port } of [third, second, first]) {
      const reply = await send(port, '/');
      expect([reply.status, reply.body]).toEqual([200, 'from the service']);
      expect(reply.headers['bulwark-degraded']).toMatch(
        /^static;upstream="next";reason="failure";age=0;policy="default\/next@0";trace="[0-9a-f]{32}"$/,
      );
      expect(reply.headers).not.toHaveProperty('bulwark-retry');
    }
  });
});

describe('the deadline of a call to a service', () => {
  it('S4.7: with nothing left the service is not called, and the answer is 504 at once', async () => {
    let calls = 0;
    const app = await upstream((_request, response) => {
      calls += 1;
      response.end();
    });
    const sides = await inbound(app);
    for (const left of ['0', '-3']) {
      const reply = await send(sides.inbound, '/', { headers: { 'bulwark-deadline': left } });
      expect([reply.status, reply.headers['bulwark-rejected']]).toEqual([504, 'deadline']);
      expect(JSON.parse(reply.body)).toMatchObject({
        service: 'storefront',
        reason: 'deadline',
        status: 504,
      });
    }
    expect(calls).toBe(0);
    const { body } = await admin(sides.admin, '/metrics');
    expect(body).toContain('bulwark_inbound_call_duration_seconds_count{outcome="deadline"} 2');
  });

  it('ends the service’s request when it passes, with 504 where no answer has begun', async () => {
    let closed = 0;
    const app = await upstream((request, response) => {
      response.once('close', () => (closed += 1));
      if (request.url === '/half') response.write('half');
    });
    const sides = await inbound(app);
    const headers = { 'bulwark-deadline': '150' };
    const began = performance.now();
    const reply = await send(sides.inbound, '/never', { headers });
    expect(performance.now() - began).toBeGreaterThanOrEqual(149);
    expect([reply.status, reply.headers['bulwark-rejected']]).toEqual([504, 'deadline']);
    await expect(send(sides.inbound, '/half', { headers })).rejects.toThrow();
    await eventually(() => closed === 2);
  });

  it('S2: 1,000 calls with a deadline of 1 ms from one caller trip no breaker of that caller', async () => {
    const app = await upstream((_request, response) => void setTimeout(() => response.end('ok'), 20));
    const server = await inbound(app);
    const circuitBreaker = {
      scope: 'Instance',
      trip: { consecutiveFailures: 3 },
      cooldown: { initial: '30s' },
    };
    const spec = { target: { service: 'next' }, timeout: { total: '5s' }, circuitBreaker };
    const caller = await inbound(app, [spec], { next: `http://127.0.0.1:${server.inbound}` });
    const calls = Array.from({ length: 1_000 }, (_, at) => at);
    for (let from = 0; from < calls.length; from += 50) {
      const some = calls.slice(from, from + 50);
      await Promise.all(
        some.map(() => via(caller.listen, 'http://next/', { headers: { 'bulwark-deadline': '1' } })),
      );
    }
    const state = JSON.parse((await admin(caller.admin, '/state')).body) as { policies: unknown[] };
    expect(state.policies[0]).toMatchObject({ breakers: [{ state: 'closed' }] });
    expect((await via(caller.listen, 'http://next/')).body).toBe('ok');
  });
});

describe('marks at an untrusted edge', () => {
  const flags = ['--trusted-peers', '127.0.0.1/32'];
  const stranger = '127.0.0.2';

  it('of a caller that is not trusted are not believed, and it is told none', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const app = await upstream((request, response) => {
      seen.push(request.headers);
      response.setHeader('Bulwark-Degraded', 'static;upstream="inner"');
      response.statusCode = 503;
      response.end();
    });
    const sides = await inbound(app, [], {}, flags);
    const headers = {
      'bulwark-deadline': '0',
      'bulwark-attempt': '9',
      'bulwark-retry': 'exhausted',
      'x-kept': '1',
    };
    const untrusted = await send(sides.inbound, '/', { headers, localAddress: stranger });
    expect(untrusted.status).toBe(503);
    expect(Object.keys(seen[0] ?? {}).filter((name) => name.startsWith('bulwark-'))).toEqual([]);
    expect(seen[0]).toMatchObject({ 'x-kept': '1', 'x-forwarded-for': stranger });
    expect(Object.keys(untrusted.headers).filter((name) => name.startsWith('bulwark-'))).toEqual([]);
    const trusted = await send(sides.inbound, '/', { headers: { 'bulwark-attempt': '9' } });
    expect(seen[1]).toMatchObject({ 'bulwark-attempt': '9' });
    expect(trusted.headers['bulwark-degraded']).toBe('static;upstream="inner"');
    const { body } = await admin(sides.admin, '/metrics');
    expect(body).toContain('bulwark_marks_stripped_total{side="inbound"} 1');
  });

  it('of an upstream that is not trusted are neither believed nor relayed', async () => {
    let calls = 0;
    const listener: RequestListener = (_request, response) => {
      calls += 1;
      response.setHeader('Bulwark-Retry', 'exhausted');
      response.setHeader('Bulwark-Degraded', 'static;upstream="liar"');
      response.statusCode = 503;
      response.end();
    };
    const strange = await layer(await upstream(listener, stranger), { flags });
    const answer = await send(strange.inbound, '/');
    expect([answer.status, answer.headers['bulwark-degraded'], calls]).toEqual([502, undefined, 3]);
    const { body } = await admin(strange.admin, '/metrics');
    expect(body).toContain('bulwark_marks_stripped_total{side="outbound"} 3');
    expect(strange.logs).toContainEqual({
      message: expect.stringContaining('--trusted-peers') as string,
      fields: { side: 'outbound', peer: stranger, total: 1 },
    });
    // What it says of its own attempts stays true.
    expect(answer.headers['bulwark-retry']).toBe('exhausted');
    calls = 0;
    const known = await layer(await upstream(listener), { flags });
    const believed = await send(known.inbound, '/');
    expect([believed.headers['bulwark-degraded'], calls]).toEqual(['static;upstream="liar"', 1]);
  });
});
