import { eventually } from '@bulwark/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent, request } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { agentOf, cleanUp, upstream } from './agent-fixture.js';
import type { Bulwark, FallbackCause } from './index.js';
import { undiciInterceptor } from './undici/index.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

const agentWith = (service: string, spec: object, believes = (_host: string) => true): Promise<Bulwark> =>
  agentOf('127.0.0.1:1', {
    believes,
    service,
    instance: `${service}-1`,
    bootstrap: [
      { apiVersion: 'bulwark.dev/v1', kind: 'ResiliencePolicy', metadata: { name: 'below' }, spec },
    ],
  });

const breaker = {
  scope: 'Instance',
  trip: { consecutiveFailures: 3 },
  cooldown: { initial: '60s', max: '60s', factor: 1 },
  recovery: { steps: [] },
};

/** One level of S6: a service that answers by what the level below says, under a policy of its own. */
async function level(name: string, below: { name: string; url: string }, fallback: object[]) {
  const bulwark = await agentWith(name, {
    target: { service: below.name },
    timeout: { attempt: '1s', total: '3s' },
    circuitBreaker: breaker,
    ...(fallback.length > 0 && { fallback }),
  });
  const { url, server } = await upstream((request, response) => {
    void bulwark.answering(
      (header) => request.headers[header] as string | undefined,
      async () => {
        const answer = await bulwark.fetch(`${below.url}/data`, { bulwark: { service: below.name } });
        const body = await answer.text();
        response.writeHead(answer.ok ? 200 : 502, bulwark.answerHeaders());
        response.end(`${name}(${body})`);
      },
    );
  });
  const state = () => bulwark.state().policies[0]?.breakers[0]?.state ?? 'closed';
  return { name, url, server, bulwark, state };
}

const fixed = (body: string) => ({ static: { status: 200, body } });
const upstreams = (members: string | null) =>
  [...(members ?? '').matchAll(/(?:^|, )([a-z-]+);upstream="([^"]+)"/g)].map(
    ([, mode, name]) => `${mode} ${name}`,
  );

describe('S6: worker → cluster → service → database, each with its own breaker and fallback', () => {
  const world = async () => {
    const down = { database: false };
    const database = await upstream((_request, response) => {
      response.statusCode = down.database ? 503 : 200;
      response.end('rows');
    });
    const service = await level('service', { name: 'database', url: database.url }, [fixed('static data')]);
    const cluster = await level('cluster', { name: 'service', url: service.url }, [fixed('read-only')]);
    const worker = await level('worker', { name: 'cluster', url: cluster.url }, [fixed('queued')]);
    const client = await agentWith('client', { target: { service: 'worker' }, timeout: { total: '4s' } });
    const ask = async () => {
      const answer = await client.fetch(`${worker.url}/data`, { bulwark: { service: 'worker' } });
      return { body: await answer.text(), levels: upstreams(answer.headers.get('bulwark-degraded')) };
    };
    return { down, service, cluster, worker, ask };
  };

  it('the answer says which level degraded, through every level above it, and only that level opens', async () => {
    const { down, service, cluster, worker, ask } = await world();
    expect(await ask()).toEqual({ body: 'worker(cluster(service(rows)))', levels: [] });
    down.database = true;
    for (let count = 0; count < 5; count += 1) {
      expect(await ask()).toEqual({
        body: 'worker(cluster(service(static data)))',
        levels: ['static database'],
      });
    }
    expect([service.state(), cluster.state(), worker.state()]).toEqual(['open', 'closed', 'closed']);
  });

  it('a level that is gone is degraded by the one above it, which opens, and its own parts are not asked', async () => {
    const { service, cluster, worker, ask } = await world();
    expect((await ask()).levels).toEqual([]);
    service.server.closeAllConnections();
    service.server.close();
    for (let count = 0; count < 5; count += 1) {
      expect(await ask()).toEqual({ body: 'worker(cluster(read-only))', levels: ['static service'] });
    }
    expect([service.state(), cluster.state(), worker.state()]).toEqual(['closed', 'open', 'closed']);
  });

  it('two parts degraded at different levels are two members, in the order they were met', async () => {
    const { down, worker } = await world();
    down.database = true;
    const front = await agentWith('front', {
      target: { service: 'ads' },
      timeout: { total: '1s' },
      fallback: [fixed('no ads')],
    });
    await front.answering(
      () => undefined,
      async () => {
        await (await front.fetch(`${worker.url}/data`)).text();
        const ads = front.call('ads', { fallback: ({ fixed: none }) => none?.body ?? '' }, () =>
          Promise.reject(new Error('down')),
        );
        expect(await ads).toBe('no ads');
        expect(upstreams(front.answerHeaders()['bulwark-degraded'] ?? null)).toEqual([
          'static database',
          'static ads',
        ]);
      },
    );
    expect(front.answerHeaders()).toEqual({});
  });
});

describe('a service between two others', () => {
  it('hands upward what was degraded in its own calls of any kind, each once', async () => {
    const bulwark = await agentWith('middle', {
      target: { service: 'below' },
      timeout: { total: '1s' },
      fallback: [fixed('{"items": []}')],
    });
    const call = () =>
      bulwark.call('below', { fallback: ({ fixed: answer }) => answer?.body ?? '' }, () =>
        Promise.reject(new Error('down')),
      );
    await bulwark.answering(
      () => undefined,
      async () => {
        expect(bulwark.answerHeaders()).toEqual({});
        expect([await call(), await call()]).toEqual(['{"items": []}', '{"items": []}']);
        expect(bulwark.answerHeaders()).toEqual({
          'bulwark-degraded':
            'static;upstream="below";reason="failure";age=0;policy="default/below@0"'.replace(
              'default',
              'shop',
            ),
        });
      },
    );
  });

  it('tells upward that retries are used up also where it has no policy of its own, or only watches', async () => {
    const { url } = await upstream((_request, response) => {
      response.writeHead(503, { 'bulwark-retry': 'exhausted' });
      response.end();
    });
    const target = { service: '127.0.0.1' };
    for (const spec of [
      { target: { service: 'another' }, timeout: { total: '1s' } },
      { target, timeout: { total: '1s' }, mode: 'Shadow' },
      { target, timeout: { total: '1s' } },
    ]) {
      const bulwark = await agentWith('middle', spec);
      await bulwark.answering(
        () => undefined,
        async () => {
          const answer = await bulwark.fetch(url);
          expect([answer.status, answer.headers.get('bulwark-retry')]).toEqual([503, 'exhausted']);
          expect(bulwark.answerHeaders(), JSON.stringify(spec)).toEqual({ 'bulwark-retry': 'exhausted' });
        },
      );
    }
  });

  it('takes away what a host says that it does not believe', async () => {
    const { url } = await upstream((_request, response) => {
      response.writeHead(503, {
        'bulwark-retry': 'exhausted',
        'bulwark-rejected': 'breaker-open',
        'bulwark-degraded': 'static;upstream="x"',
        'x-own': 'stays',
      });
      response.end('body');
    });
    const policy = {
      target: { service: '127.0.0.1' },
      timeout: { total: '2s' },
      circuitBreaker: { ...breaker, trip: { consecutiveFailures: 2 } },
    };
    for (const believed of [true, false]) {
      const hosts: string[] = [];
      const bulwark = await agentWith('middle', policy, (host) => (hosts.push(host), believed));
      const dispatcher = new Agent().compose(undiciInterceptor(bulwark));
      await bulwark.answering(
        () => undefined,
        async () => {
          const answer = await bulwark.fetch(url);
          const marks = ['bulwark-rejected', 'bulwark-degraded', 'x-own'].map((name) =>
            answer.headers.has(name),
          );
          expect([answer.status, await answer.text(), ...marks]).toEqual([
            503,
            'body',
            believed,
            believed,
            true,
          ]);
          const other = await request(url, { dispatcher });
          expect([other.statusCode, 'bulwark-rejected' in other.headers]).toEqual([503, believed]);
          await other.body.dump();
          expect(Object.keys(bulwark.answerHeaders())).toHaveLength(believed ? 2 : 0);
        },
      );
      expect(new Set(hosts)).toEqual(new Set(['127.0.0.1']));
      // A believed rejection is nobody's failure; a stranger's 503 is its own.
      expect(bulwark.state().policies[0]?.breakers[0]?.state).toBe(believed ? 'closed' : 'open');
      await dispatcher.close();
    }
  });

  it('makes queued and repeated attempts in the context of their own call', async () => {
    const bulwark = await agentWith('middle', {
      target: { service: 'below' },
      timeout: { total: '5s' },
      retry: { maxAttempts: 2, backoff: { base: '5ms', max: '5ms', jitter: 'none' }, methods: ['GET'] },
      bulkhead: { maxConcurrent: 1, maxQueued: 50, maxWait: '5s' },
    });
    const ofRequest = new AsyncLocalStorage<number>();
    const seen: (number | undefined)[][] = [];
    const one = (id: number) =>
      ofRequest.run(id, () =>
        bulwark.call('below', { method: 'GET' }, async (attempt) => {
          seen.push([id, ofRequest.getStore()]);
          await new Promise((resolve) => setTimeout(resolve, 2));
          expect(ofRequest.getStore()).toBe(id);
          if (attempt.number === 1) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
          return id;
        }),
      );
    const ids = Array.from({ length: 12 }, (_, id) => id);
    expect(await Promise.all(ids.map(one))).toEqual(ids);
    expect(seen).toHaveLength(24);
    for (const [id, found] of seen) expect(found).toBe(id);
  });
});

describe('a caller’s own fallback', () => {
  const down = () => Promise.reject(new Error('down'));
  const spec = { target: { service: 'below' }, timeout: { total: '2s' }, circuitBreaker: breaker };

  it('stands in when the policy has nothing, with the reason and the original error', async () => {
    const bulwark = await agentWith('middle', spec);
    const causes: FallbackCause[] = [];
    const kinds: unknown[] = [];
    const call = () =>
      bulwark.call<string>(
        'below',
        {
          fallback: (cause) => Promise.resolve(`instead ${causes.push(cause)}`),
          onResult: (result) => kinds.push([result.kind, result.kind === 'degraded' && result.mode]),
        },
        down,
      );
    for (let count = 1; count <= 4; count += 1) expect(await call()).toBe(`instead ${count}`);
    expect(kinds[0]).toEqual(['degraded', 'function']);
    expect(causes[0]).toMatchObject({ fixed: undefined, reason: 'failure', error: { message: 'down' } });
    expect(causes[3]).toMatchObject({ reason: 'breaker-open', error: { code: 'BULWARK_REJECTED' } });
  });

  it('makes a value of the static answer', async () => {
    const bulwark = await agentWith('middle', { ...spec, fallback: [fixed('none')] });
    const call = bulwark.call<string>(
      'below',
      { fallback: ({ fixed: answer, reason }) => `${answer?.status} ${answer?.body} ${reason}` },
      down,
    );
    expect(await call).toBe('200 none failure');
    await expect(bulwark.call('below', {}, down)).rejects.toThrow('down');
  });

  it('that throws leaves the original error, and a required contract never asks it', async () => {
    const broken = () => Promise.reject(new Error('the fallback'));
    for (const more of [{}, { fallback: [fixed('none')] }, { contract: 'required' }]) {
      const bulwark = await agentWith('middle', { ...spec, ...more });
      let asked = 0;
      const fallback = () => ((asked += 1), broken());
      await expect(bulwark.call('below', { fallback }, down), JSON.stringify(more)).rejects.toThrow(/^down$/);
      await eventually(() => asked > 0 === !('contract' in more));
    }
  });
});
