import { eventually, freePort } from '@bulwark/testing';
import type { RequestListener, ServerResponse } from 'node:http';
import { Readable, Writable } from 'node:stream';
import { pipeline as streamPipeline } from 'node:stream/promises';
import { Agent, pipeline, request, stream } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { agentOf, atEnd, cleanUp, upstream } from '../agent-fixture.js';
import { undiciInterceptor } from './index.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

const KIB = 1_024;
const spec = {
  target: { service: '127.0.0.1' },
  timeout: { attempt: '500ms', total: '3s' },
  retry: { maxAttempts: 2, backoff: { base: '1ms', max: '2ms', jitter: 'full' } },
  circuitBreaker: {
    scope: 'Instance',
    trip: { consecutiveFailures: 4 },
    cooldown: { initial: '60s', max: '60s', factor: 1 },
    recovery: { steps: [] },
  },
  bulkhead: { maxConcurrent: 1, maxQueued: 0, maxWait: '1s' },
};

async function world(listener: RequestListener, more: object = {}) {
  let requests = 0;
  const { url } = await upstream((incoming, response) => {
    requests += 1;
    listener(incoming, response);
  });
  const bulwark = await agentOf('127.0.0.1:1', {
    bootstrap: [
      {
        apiVersion: 'bulwark.dev/v1',
        kind: 'ResiliencePolicy',
        metadata: { name: 'upstream' },
        spec: { ...spec, ...more },
      },
    ],
  });
  const agent = new Agent();
  const dispatcher = agent.compose(undiciInterceptor(bulwark));
  atEnd(() => agent.destroy());
  const totals = () => bulwark.state().policies[0]?.totals;
  const state = () => bulwark.state().policies[0]?.breakers[0]?.state;
  return { url, bulwark, dispatcher, totals, state, requests: () => requests };
}

describe('undici under the policies', () => {
  it('makes another attempt on a 503, with deadline and attempt number, and keeps what the caller sent', async () => {
    const seen: unknown[] = [];
    const { url, dispatcher, totals } = await world((incoming, response) => {
      const { headers } = incoming;
      seen.push([headers['bulwark-attempt'], headers['x-own'], Number(headers['bulwark-deadline']) > 300]);
      response.statusCode = seen.length === 1 ? 503 : 200;
      response.end(`answer ${seen.length}`);
    });
    for (const headers of [{ 'x-own': 'a' }, ['x-own', 'a'], new Map([['x-own', 'a']])]) {
      seen.length = 0;
      const answer = await request(`${url}/x?q=1`, { dispatcher, headers });
      expect([answer.statusCode, await answer.body.text()]).toEqual([200, 'answer 2']);
      expect(seen).toEqual([
        [undefined, 'a', true],
        ['2', 'a', true],
      ]);
    }
    expect(totals()).toMatchObject({ calls: 3, attempts: 6, fresh: 3, inFlight: 0 });
  });

  it('answers the dependency’s own failure, marked, when attempts are used up', async () => {
    const { url, dispatcher } = await world((_incoming, response) => {
      response.writeHead(503, { 'x-from': 'dependency' });
      response.end('y'.repeat(200 * KIB));
    });
    const answer = await request(url, { dispatcher });
    expect([answer.statusCode, answer.headers['x-from'], answer.headers['bulwark-retry']]).toEqual([
      503,
      'dependency',
      'exhausted',
    ]);
    expect((await answer.body.text()).length).toBe(200 * KIB);
  });

  it('does not send a body twice that can be read once, and any other only with an idempotency key', async () => {
    const bodies: string[] = [];
    const { url, dispatcher, requests } = await world((incoming, response) => {
      void incoming.toArray().then((chunks) => {
        bodies.push(Buffer.concat(chunks as Buffer[]).toString());
        response.writeHead(503).end();
      });
    });
    const headers = { 'idempotency-key': 'k' };
    const post = async (body: string | Readable, more: object = {}) => {
      const answer = await request(url, { dispatcher, method: 'POST', body, ...more });
      await answer.body.dump();
    };
    await post('plain');
    expect(requests()).toBe(1);
    await post(Readable.from(['a', 'b']), { headers });
    expect(requests()).toBe(2);
    await post('twice', { headers });
    expect(bodies).toEqual(['plain', 'ab', 'twice', 'twice']);
  });

  it('judges an answer at its end: the slot is held until then, and a broken body is a failure', async () => {
    let response: ServerResponse | undefined;
    const { url, dispatcher, totals, state } = await world((_incoming, answer) => {
      answer.write('first');
      response = answer;
    });
    for (let count = 0; count < 4; count += 1) {
      const answer = await request(url, { dispatcher });
      expect(totals()).toMatchObject({ inFlight: 1 });
      const refused = await request(url, { dispatcher });
      expect([refused.statusCode, refused.headers['bulwark-rejected']]).toEqual([503, 'bulkhead-full']);
      expect(await refused.body.json()).toMatchObject({ status: 503, reason: 'bulkhead-full' });
      const text = answer.body.text();
      response?.destroy();
      await expect(text).rejects.toThrow();
      await eventually(() => totals()?.inFlight === 0);
    }
    expect([state(), totals()?.attempts]).toEqual(['open', 4]);
    const open = await request(url, { dispatcher });
    expect([open.headers['bulwark-rejected'], Number(open.headers['retry-after']) > 0]).toEqual([
      'breaker-open',
      true,
    ]);
    await open.body.dump();
  });

  it('counts a body that stalls as a failure and one the caller does not read as nobody’s', async () => {
    const { url, dispatcher, totals } = await world((incoming, response) => {
      if (incoming.url === '/stalls') response.write('half');
      else response.end('x'.repeat(8_192 * KIB));
    });
    const stalled = await request(`${url}/stalls`, { dispatcher });
    await expect(stalled.body.text()).rejects.toMatchObject({ name: 'TimeoutError' });
    await eventually(() => totals()?.inFlight === 0);
    expect(totals()).toMatchObject({ timeouts: 1, failed: 1, cancelled: 0 });
    const unread = await request(`${url}/large`, { dispatcher });
    await eventually(() => totals()?.cancelled === 1);
    expect(totals()).toMatchObject({ inFlight: 0 });
    await expect(unread.body.text()).rejects.toThrow();
  });

  it('ends when the caller aborts: before the answer, in it, and while it waits for its turn', async () => {
    const { url, dispatcher, totals, state } = await world((incoming, response) => {
      if (incoming.url !== '/never') response.write('half');
    });
    for (let count = 0; count < 5; count += 1) {
      const before = new AbortController();
      const never = request(`${url}/never`, { dispatcher, signal: before.signal });
      await eventually(() => totals()?.inFlight === 1, { everyMs: 1 });
      before.abort(new Error('enough'));
      await expect(never).rejects.toThrow('enough');
      const within = new AbortController();
      const answer = await request(`${url}/half`, { dispatcher, signal: within.signal });
      within.abort(new Error('enough'));
      await expect(answer.body.text()).rejects.toThrow('enough');
      await eventually(() => totals()?.inFlight === 0, { everyMs: 1 });
    }
    expect([state(), totals()?.cancelled]).toEqual(['closed', 10]);
  });

  it('answers last-good, simplified and static, says so, and hands it upward', async () => {
    let down = false;
    const { url, dispatcher, bulwark } = await world(
      (incoming, response) => {
        if (incoming.url === '/popular') return void response.end('popular');
        response.writeHead(down ? 503 : 200, { 'content-type': 'text/plain', 'set-cookie': 'a=1' });
        response.end(`full ${incoming.url}`);
      },
      {
        circuitBreaker: undefined,
        fallback: [
          { lastGood: { maxAge: '60s' } },
          { simplified: { operation: 'GET /popular' } },
          { static: { status: 200, body: '{}', contentType: 'application/json' } },
        ],
      },
    );
    const ask = async (path: string, method: 'GET' | 'POST' = 'GET') => {
      const answer = await request(`${url}${path}`, { dispatcher, method });
      const mode = String(answer.headers['bulwark-degraded']).split(';')[0];
      return [answer.statusCode, await answer.body.text(), mode, answer.headers['set-cookie']];
    };
    expect(await ask('/a')).toEqual([200, 'full /a', 'undefined', 'a=1']);
    down = true;
    await bulwark.answering(
      () => undefined,
      async () => {
        expect(await ask('/a')).toEqual([200, 'full /a', 'last-good', undefined]);
        const other = await request(`${url}/a`, { dispatcher, headers: { 'accept-encoding': 'gzip' } });
        expect(await other.body.text()).toBe('popular');
        expect(await ask('/b')).toEqual([200, 'popular', 'simplified', undefined]);
        expect(bulwark.answerHeaders()['bulwark-degraded']).toMatch(/^last-good;.*, simplified;/);
      },
    );
  });

  it('answers 504 when no answer came in time, and throws what undici throws when nobody listens', async () => {
    const { url, dispatcher } = await world(() => undefined);
    const late = await request(url, { dispatcher });
    expect(late.statusCode).toBe(504);
    expect(await late.body.json()).toMatchObject({ reason: 'timeout' });
    const nobody = request(`http://127.0.0.1:${await freePort()}`, { dispatcher });
    await expect(nobody).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('serves stream, pipeline and Node’s own fetch alike', async () => {
    let failing = 0;
    const { url, dispatcher, totals } = await world((incoming, response) => {
      failing -= 1;
      if (failing >= 0) return void response.writeHead(503).end();
      if (incoming.method === 'GET') response.end('z'.repeat(300 * KIB));
      else incoming.pipe(response);
    });
    failing = 1;
    let bytes = 0;
    await stream(url, { dispatcher, method: 'GET' }, ({ statusCode }) => {
      expect(statusCode).toBe(200);
      return new Writable({ write: (chunk: Buffer, _encoding, done) => ((bytes += chunk.length), done()) });
    });
    expect(bytes).toBe(300 * KIB);
    const echoed: Buffer[] = [];
    await streamPipeline(
      Readable.from([Buffer.from('one '), Buffer.from('two')]),
      pipeline(url, { dispatcher, method: 'PUT' }, ({ body }) => body),
      new Writable({ write: (chunk: Buffer, _encoding, done) => (echoed.push(chunk), done()) }),
    );
    expect(Buffer.concat(echoed).toString()).toBe('one two');
    failing = 1;
    const answer = await fetch(url, { dispatcher } as unknown as RequestInit);
    expect([answer.status, (await answer.text()).length]).toEqual([200, 300 * KIB]);
    await eventually(() => totals()?.fresh === 3);
    expect(totals()).toMatchObject({ inFlight: 0, retries: 2 });
  });

  it('passes what no policy is for', async () => {
    const { url, dispatcher, bulwark } = await world(
      (incoming, response) => {
        response.end(String(incoming.headers['bulwark-deadline']));
      },
      { target: { service: 'another' } },
    );
    const answer = await request(url, { dispatcher });
    expect(await answer.body.text()).toBe('undefined');
    const marks = (name: string) => (name === 'bulwark-deadline' ? '900' : undefined);
    const within = await bulwark.answering(marks, () => request(url, { dispatcher }));
    expect(Number(await within.body.text())).toBeGreaterThan(500);
  });
});
