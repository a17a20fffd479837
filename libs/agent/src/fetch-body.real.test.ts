import { eventually } from '@bulwark/testing';
import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { agentOf, cleanUp, upstream } from './agent-fixture.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

const KIB = 1_024;
const breaker = {
  scope: 'Instance',
  trip: { consecutiveFailures: 2 },
  cooldown: { initial: '60s', max: '60s', factor: 1 },
  recovery: { steps: [] },
};
const spec = {
  target: { service: '127.0.0.1' },
  timeout: { attempt: '400ms', total: '2s' },
  retry: { maxAttempts: 3, backoff: { base: '1ms', max: '2ms', jitter: 'full' } },
  circuitBreaker: breaker,
  bulkhead: { maxConcurrent: 1, maxQueued: 0, maxWait: '1s' },
};

/** A dependency whose answers the test writes, and a guarded agent. */
async function world(answer: (response: ServerResponse, url: string) => void, more: object = {}) {
  let requests = 0;
  const { url } = await upstream((request, response) => {
    requests += 1;
    answer(response, request.url ?? '');
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
  const totals = () => bulwark.state().policies[0]?.totals;
  const state = () => bulwark.state().policies[0]?.breakers[0]?.state;
  return { url, bulwark, totals, state, requests: () => requests };
}

describe('the outcome of a fetch', () => {
  it('is judged at the end of the body: until then the slot is held, the caller has the head long since', async () => {
    let finish: (() => void) | undefined;
    const { url, bulwark, totals } = await world((response) => {
      response.write('first ');
      finish = () => response.end('last');
    });
    const answer = await bulwark.fetch(url);
    expect([answer.status, answer.ok, answer.url]).toEqual([200, true, `${url}/`]);
    expect(totals()).toMatchObject({ inFlight: 1, fresh: 0 });
    expect((await bulwark.fetch(url)).headers.get('bulwark-rejected')).toBe('bulkhead-full');
    finish?.();
    expect(await answer.text()).toBe('first last');
    expect(totals()).toMatchObject({ inFlight: 0, attempts: 1, fresh: 1 });
  });

  it('is known before the caller hears of the end: calls one after the other never meet their own slot', async () => {
    const { url, bulwark } = await world(
      (response, path) => {
        response.write('a');
        if (path === '/breaks') response.destroy();
        else response.end('b');
      },
      { circuitBreaker: undefined, retry: undefined },
    );
    for (let count = 0; count < 50; count += 1) {
      const answer = await bulwark.fetch(url);
      expect([answer.status, await answer.text()]).toEqual([200, 'ab']);
      const cancelled = await bulwark.fetch(url);
      expect(cancelled.status).toBe(200);
      await cancelled.body?.cancel();
      const broken = await bulwark.fetch(`${url}/breaks`).catch(() => undefined);
      expect(broken?.status ?? 200).toBe(200);
      await broken?.text().catch(() => undefined);
    }
  });

  it('is the dependency’s failure when the body breaks off, and is not repeated: part of it was delivered', async () => {
    const { url, bulwark, totals, state, requests } = await world((response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('half');
      setTimeout(() => response.destroy(), 20);
    });
    for (let count = 0; count < 2; count += 1) {
      const answer = await bulwark.fetch(url);
      await expect(answer.text()).rejects.toThrow();
      await eventually(() => totals()?.inFlight === 0);
    }
    expect([state(), requests()]).toEqual(['open', 2]);
    expect((await bulwark.fetch(url)).headers.get('bulwark-rejected')).toBe('breaker-open');
  });

  it('is the dependency’s failure when the body stalls until the attempt’s timeout', async () => {
    const { url, bulwark, totals, state } = await world((response) => void response.write('half'));
    for (let count = 0; count < 2; count += 1) {
      const answer = await bulwark.fetch(url);
      await expect(answer.text()).rejects.toMatchObject({ name: 'TimeoutError' });
      await eventually(() => totals()?.inFlight === 0);
    }
    expect([state(), totals()?.timeouts]).toEqual(['open', 2]);
  });

  it('is a success by itself when nobody reads a body of up to 64 KiB', async () => {
    const { url, bulwark, totals } = await world((response) => void response.end('x'.repeat(60 * KIB)));
    const answers: Response[] = [];
    for (let count = 1; count <= 3; count += 1) {
      answers.push(await bulwark.fetch(url));
      await eventually(() => totals()?.fresh === count, { withinMs: 2_000, everyMs: 1 });
    }
    expect(totals()).toMatchObject({ inFlight: 0, timeouts: 0 });
    expect((await answers[0]!.text()).length).toBe(60 * KIB);
  });

  it('is nobody’s when the caller leaves a large body unread: the timeout takes its slot back', async () => {
    const { url, bulwark, totals, state } = await world(
      (response) => void response.end('x'.repeat(4_096 * KIB)),
    );
    for (let count = 0; count < 3; count += 1) {
      const answer = await bulwark.fetch(url);
      expect(totals()).toMatchObject({ inFlight: 1 });
      await eventually(() => totals()?.inFlight === 0);
      await expect(answer.text()).rejects.toMatchObject({ name: 'TimeoutError' });
    }
    expect([state(), totals()?.cancelled]).toEqual(['closed', 3]);
  });

  it('is the head’s when the caller wants no more of the body, and the slot is free at once', async () => {
    const { url, bulwark, totals } = await world((response) => void response.write('x'.repeat(512 * KIB)));
    const answer = await bulwark.fetch(url);
    await answer.body?.cancel();
    await eventually(() => totals()?.fresh === 1, { withinMs: 300 });
    expect(totals()).toMatchObject({ inFlight: 0, timeouts: 0 });
  });

  it('is nobody’s when the caller aborts in the middle, and the body says so', async () => {
    const { url, bulwark, totals, state } = await world((response) => void response.write('half'));
    for (let count = 0; count < 3; count += 1) {
      const caller = new AbortController();
      const answer = await bulwark.fetch(url, { signal: caller.signal });
      const text = answer.text();
      caller.abort(new Error('enough'));
      await expect(text).rejects.toThrow('enough');
      await eventually(() => totals()?.inFlight === 0);
    }
    expect([state(), totals()?.cancelled]).toEqual(['closed', 3]);
  });

  it('keeps what fetch says of an answer: url, redirect, bytes, cookies, clone and byte readers', async () => {
    const bytes = Buffer.from(Array.from({ length: 200 * KIB }, (_, at) => at % 251));
    const { url, bulwark } = await world((response, path) => {
      if (path === '/from') return void response.writeHead(302, { location: '/to' }).end();
      response.writeHead(200, [
        ...['content-type', 'application/octet-stream'],
        ...['set-cookie', 'a=1', 'set-cookie', 'b=2'],
      ]);
      response.end(bytes);
    });
    const answer = await bulwark.fetch(`${url}/from`);
    expect([answer.url, answer.redirected, answer.type]).toEqual([`${url}/to`, true, 'basic']);
    expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    const copy = answer.clone();
    const read = await Promise.all([answer.arrayBuffer(), copy.arrayBuffer()]);
    for (const whole of read) expect(Buffer.from(whole).equals(bytes)).toBe(true);
    const byob = (await bulwark.fetch(`${url}/to`)).body!.getReader({ mode: 'byob' });
    let total = 0;
    for (;;) {
      const { done, value } = await byob.read(new Uint8Array(10_000));
      if (done) break;
      total += value.byteLength;
    }
    expect(total).toBe(bytes.length);
  });

  it('of a call without a policy is fetch’s own answer, and its caller’s deadline holds for the body too', async () => {
    const { url, bulwark } = await world((response) => void response.write('half'), {
      target: { service: 'another' },
    });
    const answer = await bulwark.fetch(url, { bulwark: { deadlineMs: 150 } });
    await expect(answer.text()).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  it('answers last-good where the body of an answer to be remembered breaks off', async () => {
    let broken = false;
    const { url, bulwark } = await world(
      (response) => {
        response.writeHead(200, { 'content-length': '5' });
        if (!broken) return void response.end('whole');
        response.write('ha');
        setTimeout(() => response.destroy(), 10);
      },
      { fallback: [{ lastGood: { maxAge: '60s' } }], circuitBreaker: undefined },
    );
    expect(await (await bulwark.fetch(url)).text()).toBe('whole');
    broken = true;
    const answer = await bulwark.fetch(url);
    expect(answer.headers.get('bulwark-degraded')).toMatch(/^last-good;.*reason="failure"/);
    expect(await answer.text()).toBe('whole');
  });
});

describe('what a fetch is', () => {
  it('trips nothing when its caller has 1 ms: 1,000 times', async () => {
    const { url, bulwark, state, totals } = await world(
      (response) => void setTimeout(() => response.end('late'), 20),
      { bulkhead: undefined },
    );
    const one = async () => (await bulwark.fetch(url, { bulwark: { deadlineMs: 1 } })).status;
    for (let round = 0; round < 20; round += 1) {
      const statuses = await Promise.all(Array.from({ length: 50 }, one));
      expect(new Set(statuses)).toEqual(new Set([504]));
    }
    expect([state(), totals()?.calls]).toEqual(['closed', 1_000]);
    expect((await bulwark.fetch(url)).status).toBe(200);
  });

  it('is refused as fetch refuses it when it cannot be made', async () => {
    const { bulwark } = await world((response) => void response.end());
    await expect(bulwark.fetch('no url')).rejects.toThrow(TypeError);
    await expect(bulwark.fetch('http://127.0.0.1/', { headers: { 'bad name': 'x' } })).rejects.toThrow(
      TypeError,
    );
  });

  it('is repeated with the idempotency key it carries, and never with a body that is a stream', async () => {
    const { url, bulwark, requests } = await world((response) => void response.writeHead(503).end());
    const post = { method: 'POST', body: 'pay 5' };
    await bulwark.fetch(url, post);
    expect(requests()).toBe(1);
    await bulwark.fetch(url, { ...post, headers: { 'idempotency-key': 'k1' } });
    expect(requests()).toBe(2);
  });
});
