import { eventually, temporaryDirectory } from '@bulwark/testing';
import { Dependency } from '@bulwark/demo';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run, startServer, startSidecar, type Server, type Sidecar } from './programs.js';

/** Three policies that differ only in contract and fallback; a cooldown that outlasts the test. */
const policy = (service: string, rest: string) => `
apiVersion: bulwark.dev/v1
kind: ResiliencePolicy
metadata: { name: ${service.replace('-api', '')}, namespace: shop }
spec:
  target: { service: ${service} }
  timeout: { total: 2s }
  circuitBreaker:
    scope: Fleet
    trip: { consecutiveFailures: 10 }
    quorum: { instances: 2, share: 20% }
    cooldown: { initial: 30s, max: 60s, factor: 2 }
  ${rest}
`;

const POLICIES = [
  policy('fraud-api', 'contract: required'),
  policy('recommendations', 'fallback: [{ lastGood: { maxAge: 120s } }]'),
  policy('payments', 'contract: required'),
].join('---\n');

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  readonly tookMs: number;
}

/** As `curl -x http://SIDECAR http://SERVICE/PATH` does it: the absolute form to the proxy. */
function viaProxy(sidecar: Sidecar, url: string): Promise<Answer> {
  const [host = '', port = ''] = sidecar.listen.split(':');
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    const call = request({ host, port, path: url, headers: { host: new URL(url).host } }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body,
          tookMs: performance.now() - startedMs,
        }),
      );
    });
    call.once('error', reject);
    call.end();
  });
}

describe('calls through sidecars whose upstream dies', () => {
  const services = ['fraud-api', 'recommendations', 'payments'];
  const dependency = new Dependency(services);
  const directory = temporaryDirectory('sidecars');
  let dependencyUrl = '';
  let server: Server;
  const sidecars: Sidecar[] = [];

  beforeAll(async () => {
    dependencyUrl = `http://127.0.0.1:${await dependency.listen(0)}`;
    server = await startServer(['--store', `file:${directory.path}/store`]);
    const file = `${directory.path}/policies.yaml`;
    writeFileSync(file, POLICIES);
    const applied = await run(['apply', '-f', file, '--server', `http://${server.http}`]);
    expect(applied.code, applied.stderr).toBe(0);
    for (const instance of ['a', 'b', 'c']) {
      const upstreams = services.flatMap((name) => ['--upstream', `${name}=${dependencyUrl}/svc/${name}`]);
      sidecars.push(
        await startSidecar([
          ...['--service', 'storefront', '--namespace', 'shop', '--instance', instance],
          ...['--control-plane', server.grpc, '--state', `${directory.path}/agent-${instance}`, ...upstreams],
        ]),
      );
    }
    for (const sidecar of sidecars) {
      await eventually(async () => (await fetch(`http://${sidecar.admin}/readyz`)).ok, { withinMs: 10_000 });
    }
  });

  afterAll(async () => {
    for (const sidecar of sidecars) await sidecar.process.stop();
    await server.process.stop();
    dependency.close();
    directory.remove();
  });

  const everywhere = (url: string) => Promise.all(sidecars.map((sidecar) => viaProxy(sidecar, url)));

  it('rejects on every sidecar once the fleet has opened, in under 5 ms at the median, with the fixed headers', async () => {
    expect((await everywhere('http://fraud-api/check')).map((one) => one.status)).toEqual([200, 200, 200]);
    await fetch(`${dependencyUrl}/break/fraud-api`, { method: 'POST' });
    await eventually(
      async () =>
        (await everywhere('http://fraud-api/check')).every(
          (one) => one.headers['bulwark-rejected'] === 'breaker-open',
        ),
      { withinMs: 10_000, what: 'all sidecars to reject' },
    );
    const answers: Answer[] = [];
    for (let n = 0; n < 200; n += 1) answers.push(await viaProxy(sidecars[n % 3]!, 'http://fraud-api/check'));
    const rejected = answers[0]!;
    expect(answers.every((one) => one.status === 503)).toBe(true);
    expect(Number(rejected.headers['retry-after'])).toBeGreaterThan(0);
    expect(rejected.headers['content-type']).toContain('application/problem+json');
    expect(JSON.parse(rejected.body)).toMatchObject({ status: 503 });
    const median = answers.map((one) => one.tookMs).sort((a, b) => a - b)[100]!;
    console.log(`rejected calls answer in ${median.toFixed(2)} ms (median of 200)`);
    expect(median).toBeLessThan(5);
  });

  it('answers 200 with the age of the data where the policy has a last-good fallback', async () => {
    expect((await everywhere('http://recommendations/v1/recs')).map((one) => one.status)).toEqual([
      200, 200, 200,
    ]);
    await fetch(`${dependencyUrl}/break/recommendations`, { method: 'POST' });
    const seen = await eventually(
      async () => {
        const answers = await everywhere('http://recommendations/v1/recs');
        expect(answers.map((one) => one.status)).toEqual([200, 200, 200]);
        const all = answers.every((one) =>
          String(one.headers['bulwark-degraded']).includes('reason="breaker-open"'),
        );
        return all ? answers : false;
      },
      { withinMs: 10_000, what: 'all sidecars to answer from memory because the breaker is open' },
    );
    for (const answer of seen) {
      expect(answer.headers['bulwark-degraded']).toMatch(
        /^last-good;upstream="recommendations";reason="breaker-open";age=\d+;policy="shop\/recommendations@1"/,
      );
      expect(Number(answer.headers['age'])).toBeGreaterThanOrEqual(0);
      expect(answer.body).toContain('items');
    }
  });

  it('leaves the payments upstream beside them untouched', async () => {
    for (let n = 0; n < 100; n += 1) {
      const answer = await viaProxy(sidecars[n % 3]!, 'http://payments/charge');
      expect(answer.status).toBe(200);
      expect(answer.headers['bulwark-degraded']).toBeUndefined();
    }
  });
});
