import { BreakerState } from '@bulwark/protocol';
import { eventually, freePort } from '@bulwark/testing';
import { afterEach, describe, expect, it } from 'vitest';
import {
  agentOf,
  cleanUp,
  fraudBreaker,
  fraudKey,
  peerAt,
  policy,
  upstream,
  verdict,
  version,
} from './agent-fixture.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

describe('fetch under the policies', () => {
  const lastGood = {
    target: { service: '127.0.0.1' },
    timeout: { attempt: '1s', total: '3s' },
    retry: { maxAttempts: 2, backoff: { base: '1ms', max: '2ms' } },
    fallback: [{ lastGood: { maxAge: '120s' } }],
  };
  const guarded = async (spec: object) => {
    const peer = await peerAt();
    const bulwark = await agentOf(peer.address);
    await eventually(() => peer.connected);
    peer.update({ version: version(5), full: true, resources: [policy('upstream', 4, spec)] });
    await eventually(() => peer.acks.length === 1);
    return { peer, bulwark };
  };

  it('answers the last good answer with its age and why, and never another caller’s', async () => {
    let down = false;
    const { url } = await upstream((request, response) => {
      response.statusCode = down ? 503 : 200;
      response.end(`for ${request.headers.authorization ?? 'nobody'}`);
    });
    const { bulwark } = await guarded(lastGood);
    const as = (who: string) => ({ headers: { authorization: who } });
    const fresh = await bulwark.fetch(`${url}/recs`, as('ann'));
    expect([fresh.status, await fresh.text(), fresh.headers.get('bulwark-degraded')]).toEqual([
      200,
      'for ann',
      null,
    ]);
    down = true;
    const degraded = await bulwark.fetch(`${url}/recs`, as('ann'));
    expect([degraded.status, await degraded.text()]).toEqual([200, 'for ann']);
    expect(degraded.headers.get('bulwark-degraded')).toMatch(
      /^last-good;upstream="127\.0\.0\.1";reason="failure";age=0;policy="shop\/upstream@4"$/,
    );
    expect(degraded.headers.get('age')).toBe('0');
    const other = await bulwark.fetch(`${url}/recs`, as('bob'));
    expect([other.status, other.headers.get('bulwark-retry')]).toEqual([503, 'exhausted']);
  });

  it('answers the simplified operation of the same service in full when the call itself fails', async () => {
    const { url } = await upstream((request, response) => {
      response.statusCode = request.url === '/popular?n=3' ? 200 : 503;
      response.end(`answer of ${request.url}`);
    });
    const { bulwark } = await guarded({
      target: { service: '127.0.0.1' },
      timeout: { total: '3s' },
      fallback: [{ simplified: { operation: 'GET /popular' } }],
    });
    const response = await bulwark.fetch(`${url}/recs?n=3`);
    expect([response.status, await response.text()]).toEqual([200, 'answer of /popular?n=3']);
    expect(response.headers.get('bulwark-degraded')).toMatch(/^simplified;.*reason="failure"/);
  });

  it('hands deadline and attempt number down, and retries on a 503', async () => {
    const seen: (string | string[] | undefined)[][] = [];
    const { url } = await upstream((request, response) => {
      seen.push([request.headers['bulwark-deadline'], request.headers['bulwark-attempt']]);
      response.statusCode = seen.length === 1 ? 503 : 200;
      response.end('done');
    });
    const { bulwark } = await guarded(lastGood);
    const response = await bulwark.fetch(url);
    expect(response.status).toBe(200);
    expect(seen.map(([, attempt]) => attempt)).toEqual([undefined, '2']);
    for (const [deadline] of seen) expect(Number(deadline)).toBeGreaterThan(900);
  });

  it('answers a rejection as 503 with the reason and a problem document', async () => {
    const { url } = await upstream((_request, response) => response.end());
    const { peer, bulwark } = await guarded({ ...fraudBreaker, target: { service: '127.0.0.1' } });
    const key = { ...fraudKey, policy: 'upstream' };
    peer.verdicts([verdict(1, { key, state: BreakerState.BREAKER_STATE_OPEN })]);
    const rejected = await eventually(async () => {
      const response = await bulwark.fetch(url);
      return response.status === 503 && response;
    });
    expect(rejected.headers.get('bulwark-rejected')).toBe('breaker-open');
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(rejected.headers.get('content-type')).toBe('application/problem+json');
    expect(await rejected.json()).toMatchObject({
      status: 503,
      reason: 'breaker-open',
      policy: 'shop/upstream@4',
    });
  });

  it('throws as fetch does when there is no policy and nobody listens', async () => {
    const { bulwark } = await guarded(lastGood);
    await expect(bulwark.fetch(`http://localhost:${await freePort()}/`)).rejects.toThrow(TypeError);
  });

  it('lets a dead leaf see at most three calls through three layers of three attempts', async () => {
    let leafCalls = 0;
    const leaf = await upstream((_request, response) => {
      leafCalls += 1;
      response.statusCode = 503;
      response.end();
    });
    const spec = { ...lastGood, retry: { ...lastGood.retry, maxAttempts: 3 }, fallback: undefined };
    const layer = async (below: string) => {
      const { bulwark } = await guarded(spec);
      return upstream((request, response) => {
        void bulwark.answering(
          (name) => request.headers[name] as string | undefined,
          async () => {
            const answer = await bulwark.fetch(below);
            response.writeHead(answer.ok ? 200 : 502, bulwark.answerHeaders());
            response.end();
          },
        );
      });
    };
    const two = await layer(leaf.url);
    const one = await layer(two.url);
    const { bulwark } = await guarded(spec);
    const answer = await bulwark.fetch(one.url);
    expect(answer.status).toBe(502);
    expect(answer.headers.get('bulwark-retry')).toBe('exhausted');
    expect(leafCalls).toBe(3);
  });
});
