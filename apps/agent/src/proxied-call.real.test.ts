import type { CallPlan, CallResult } from '@bulwark/agent';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Answer } from './answer.js';
import { ProxiedCall, type ProxiedCallOptions, type Told } from './proxied-call.js';
import { readRequestBody } from './request-body.js';
import { atEnd, cleanUp, upstream, via } from './sidecar-fixture.js';
import { UpstreamClient } from './upstream-client.js';

afterEach(cleanUp);

/** Every call is one attempt, and its answer is what comes. */
const plain: CallPlan = {
  settings: undefined,
  lastGood: undefined,
  execute: async (request, attempt, adapter) => {
    const { deadlineMs: timeoutMs = Infinity, signal = new AbortController().signal } = request;
    const value = await attempt({ number: 1, timeoutMs, signal, probe: false });
    adapter.judge(value);
    return { kind: 'fresh', value, attempts: 1, policy: undefined };
  },
};

interface Made {
  readonly told: Told[];
  readonly results: CallResult<Answer>[];
}

/** A proxy whose every call goes to `url` with these options; answers its port. */
async function proxy(url: string, options: Partial<ProxiedCallOptions>): Promise<{ port: number } & Made> {
  const upstreams = new UpstreamClient();
  const { hostname, port } = new URL(url);
  const made: Made = { told: [], results: [] };
  const server = createServer((request, response) => {
    const target = {
      ...{
        service: 'next',
        mapped: true,
        secure: false,
        host: hostname,
        port: Number(port),
        authority: 'next',
      },
      ...{ path: '/x', basePath: '', url: 'http://next/x', operation: 'GET /x' },
    };
    const call = async () => {
      const body = await readRequestBody(request, response, false);
      const { signal } = new AbortController();
      const common = { request, response, target, body, upstreams, signal, via: '1.1 test' };
      const onTold = (told: Told) => void made.told.push({ ...told });
      const end = { plan: plain, traceId: undefined, onTold, ...options };
      made.results.push(await new ProxiedCall({ ...common, ...end }).run());
    };
    void call();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    upstreams.close();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, ...made };
}

describe('what a proxied call is told and tells', () => {
  it('sends the marks it was given, whatever the request says of itself', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const url = await upstream((request, response) => {
      seen.push(request.headers);
      response.end();
    });
    const headers = { 'bulwark-deadline': '1', 'bulwark-attempt': '7' };
    const joined = await proxy(url, { marks: { deadlineMs: 5_000, callerAttempt: 2 } });
    await via(joined.port, 'http://next/x', { headers });
    expect(seen.at(-1)).toMatchObject({ 'bulwark-deadline': '5000', 'bulwark-attempt': '2' });
    const none = await proxy(url, { marks: {} });
    await via(none.port, 'http://next/x', { headers });
    expect(seen.at(-1)).not.toHaveProperty('bulwark-deadline');
    expect(seen.at(-1)).not.toHaveProperty('bulwark-attempt');
    const asItSays = await proxy(url, {});
    await via(asItSays.port, 'http://next/x', {
      headers: { 'bulwark-deadline': '800', 'bulwark-attempt': '3' },
    });
    expect(seen.at(-1)).toMatchObject({ 'bulwark-deadline': '800', 'bulwark-attempt': '3' });
  });

  it('sends a traceparent that it is given in place of the request’s, and the request’s as it is otherwise', async () => {
    const seen: unknown[] = [];
    const url = await upstream((request, response) => {
      seen.push([request.headers['traceparent'], request.headers['tracestate']]);
      response.end();
    });
    const [made, theirs] = [
      '00-'.padEnd(35, '1') + '-1111111111111111-00',
      '00-'.padEnd(35, '2') + '-2222222222222222-01',
    ];
    const making = await proxy(url, { traceparent: made });
    await via(making.port, 'http://next/x');
    await via(making.port, 'http://next/x', { headers: { traceparent: 'junk', tracestate: 'a=1' } });
    const passing = await proxy(url, {});
    await via(passing.port, 'http://next/x', { headers: { traceparent: theirs, tracestate: 'a=1' } });
    expect(seen).toEqual([
      [made, undefined],
      [made, undefined],
      [theirs, 'a=1'],
    ]);
  });

  it('believes and relays the marks of an answer only from whom it may', async () => {
    const marks = { 'bulwark-retry': 'exhausted', 'bulwark-degraded': 'static;upstream="leaf"' };
    const url = await upstream((_request, response) => {
      for (const [name, value] of Object.entries(marks)) response.setHeader(name, value);
      response.setHeader('bulwark-rejected', 'breaker-open');
      response.statusCode = 503;
      response.end('no');
    });
    const asked: unknown[] = [];
    const trusting = await proxy(url, { believes: (address) => asked.push(address) > 0 });
    const relayed = await via(trusting.port, 'http://next/x');
    expect(relayed.headers).toMatchObject({ ...marks, 'bulwark-rejected': 'breaker-open' });
    expect(trusting.told).toEqual([{ exhausted: true, degraded: 'static;upstream="leaf"' }]);
    expect(asked).toEqual(['127.0.0.1']);
    const wary = await proxy(url, { believes: () => false });
    const stripped = await via(wary.port, 'http://next/x');
    expect([stripped.status, stripped.body]).toEqual([503, 'no']);
    for (const name of [...Object.keys(marks), 'bulwark-rejected']) {
      expect(stripped.headers).not.toHaveProperty(name);
    }
    expect(wary.told).toEqual([{ exhausted: false, degraded: undefined }]);
    expect(wary.results).toMatchObject([{ kind: 'fresh', value: { status: 503 } }]);
  });

  it('hands on the members of the levels below a simplified answer, its own one last', async () => {
    const url = await upstream((_request, response) => {
      response.setHeader('bulwark-degraded', 'static;upstream="leaf"');
      response.end('simple');
    });
    const simplifying: CallPlan = {
      ...plain,
      execute: async (request, _attempt, adapter) => {
        const attempt = { number: 1, timeoutMs: 1_000, signal: new AbortController().signal, probe: false };
        const value = await adapter.simplified?.('GET /simple', request, attempt);
        const policy = 'default/next@1';
        return {
          ...{ kind: 'degraded', mode: 'simplified', value, fixed: undefined, ageMs: 0, reason: 'failure' },
          ...{ attempts: 1, policy },
          cause: { kind: 'rejected', reason: 'drill', retryAfterMs: 0, detail: '', attempts: 0, policy },
        };
      },
    };
    const { port, told } = await proxy(url, { plan: simplifying });
    const reply = await via(port, 'http://next/x');
    expect(reply.headers['bulwark-degraded']).toMatch(/^static;upstream="leaf", simplified;upstream="next";/);
    expect(told).toEqual([{ exhausted: false, degraded: reply.headers['bulwark-degraded'] }]);
  });
});
