import { gzipSync } from 'node:zlib';
import { eventually } from '@bulwark/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { cleanUp, fraudSpec, median, sidecar, upstream, via } from './sidecar-fixture.js';

afterEach(cleanUp);

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
      expect(JSON.parse(reply.body)).toMatchObject({
        detail: "This agent's own breaker for fraud-api (policy default/fraud-api) is open.",
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
      response.setHeader('Set-Cookie', 'session=1');
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
    expect([fresh.headers['set-cookie'], degraded.headers['set-cookie']]).toEqual([['session=1'], undefined]);
    const unseen = await via(listen, 'http://fraud-api/other');
    expect([unseen.status, unseen.body]).toEqual([200, '{"items": []}']);
    expect(unseen.headers['bulwark-degraded']).toMatch(/^static;upstream="fraud-api"/);
    const another = await via(listen, 'http://fraud-api/recs', {
      headers: { authorization: 'Bearer other' },
    });
    expect(another.headers['bulwark-degraded']).toMatch(/^static;/);
  });

  it('never serves an answer in a coding that its caller did not ask for', async () => {
    let down = false;
    const url = await upstream((request, response) => {
      if (down) response.statusCode = 503;
      const gzip = request.headers['accept-encoding'] === 'gzip';
      if (gzip) response.setHeader('Content-Encoding', 'gzip');
      response.end(gzip ? gzipSync('packed') : 'plain');
    });
    const { listen } = await sidecar([{ ...fraudSpec, fallback: [{ lastGood: { maxAge: '120s' } }] }], {
      'fraud-api': url,
    });
    await via(listen, 'http://fraud-api/recs', { headers: { 'accept-encoding': 'gzip' } });
    down = true;
    expect((await via(listen, 'http://fraud-api/recs')).status).toBe(503);
    const packed = await via(listen, 'http://fraud-api/recs', { headers: { 'accept-encoding': 'gzip' } });
    expect([packed.status, packed.headers['content-encoding']]).toEqual([200, 'gzip']);
  });

  it('makes the simplified call with its own method, and without the body of another', async () => {
    const seen: string[] = [];
    const url = await upstream((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        seen.push(`${request.method} ${request.url} ${request.headers['content-type'] ?? '-'} ${body}`);
        if (request.method === 'POST') response.statusCode = 503;
        response.end('popular');
      });
    });
    const spec = {
      ...fraudSpec,
      fallback: [{ simplified: { operation: 'GET /recs' } }],
    };
    const { listen } = await sidecar([spec], { 'fraud-api': url });
    const answer = await via(listen, 'http://fraud-api/recs', {
      method: 'POST',
      body: '{"user": 1}',
      headers: { 'content-type': 'application/json' },
    });
    expect([answer.status, answer.body]).toEqual([200, 'popular']);
    expect(answer.headers['bulwark-degraded']).toMatch(/^simplified;/);
    expect(seen).toEqual(['POST /recs application/json {"user": 1}', 'GET /recs - ']);
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
