import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeServer } from './testing/fake-server.js';
import { runCli } from './testing/run-cli.js';
import { sampleBreaker } from './testing/samples.js';

describe('bulwark force', () => {
  let server: FakeServer;
  const force = (...args: string[]) =>
    runCli(['force', 'breaker', ...args, '-n', 'shop', '--server', server.url]);

  beforeEach(async () => {
    server = await FakeServer.start();
    server.put('breakers', sampleBreaker('reco.1a2b3c4d'));
  });

  afterEach(() => server.stop());

  it('sends the state, the time and the reason', async () => {
    const { code, stdout } = await force('reco.1a2b3c4d', 'open', '--for', '5m', '--reason', 'upgrade');
    expect([code, stdout]).toEqual([0, 'breaker.bulwark.dev/reco.1a2b3c4d forced open for 5m\n']);
    expect(server.seen.at(-1)).toMatchObject({
      method: 'PUT',
      path: '/apis/bulwark.dev/v1/namespaces/shop/breakers/reco.1a2b3c4d/force',
      body: { state: 'Open', for: '5m', reason: 'upgrade', by: expect.stringMatching(/./) as string },
    });
    expect((await force('reco.1a2b3c4d', 'none')).stdout).toBe(
      'breaker.bulwark.dev/reco.1a2b3c4d no longer forced\n',
    );
  });

  it('wants a reason, a known state and a breaker that is there', async () => {
    expect(await force('reco.1a2b3c4d', 'open')).toMatchObject({ code: 64 });
    expect(await force('reco.1a2b3c4d', 'ajar', '--reason', 'x')).toMatchObject({ code: 64 });
    expect(await force('pay', 'closed', '--reason', 'x')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('See: bulwark get breakers') as string,
    });
  });

  it('takes the name of a policy, or how a name begins, when one breaker is meant, and tells which', async () => {
    server.put('breakers', sampleBreaker('recommendations.00000000'));
    const short = ['reco', 'closed', '--reason', 'x'] as const;
    expect((await force(...short)).stdout).toBe('breaker.bulwark.dev/reco.1a2b3c4d forced closed for 10m\n');
    expect((await force('recom', 'none')).stdout).toMatch(/\/recommendations\.00000000 no longer forced\n$/);
    server.put('breakers', sampleBreaker('reco.99999999'));
    server.seen.length = 0;
    expect(await force(...short)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Did you mean reco.1a2b3c4d, reco.99999999?') as string,
    });
    expect(server.writes.map(({ path }) => path.split('/').slice(-2))).toEqual([['reco', 'force']]);
  });

  it('without a name says where to read on', async () => {
    expect(await force()).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/\nTry: bulwark force breaker --help\n$/) as string,
    });
  });
});

describe('bulwark demo', () => {
  it('speaks to the dependency of the demo, and says how to start it', async () => {
    const asked: string[] = [];
    const dependency = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      const body =
        request.url === '/status'
          ? { services: [{ service: 'recs', health: 'ok', calls: 5 }] }
          : { service: 'recs', health: 'failing' };
      response.end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => dependency.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(dependency.address() as AddressInfo).port}`;
    const run = (...args: string[]) => runCli(['demo', ...args, '--demo', url]);
    expect((await run('break', 'recs')).stdout).toBe('recs is failing\n');
    expect((await run('status')).stdout).toBe('recs is ok, 5 calls so far\n');
    expect(asked).toEqual(['POST /break/recs', 'GET /status']);
    await new Promise((resolve) => dependency.close(resolve));
    expect(await run('heal', 'recs')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('npm start') as string,
    });
  });
});

describe('bulwark version', () => {
  it('is of this command, and of a server on request', async () => {
    expect((await runCli(['version'])).stdout).toMatch(/^Bulwark \d+\.\d+\.\d+ \(Node \d+\.\d+\.\d+\)\n$/);
    const server = await FakeServer.start();
    server.intercept = () => ({ code: 200, body: { gitVersion: 'v9.9.9' } });
    expect((await runCli(['version', '--server', server.url])).stdout).toMatch(/\nServer {2}v9\.9\.9\n$/);
    expect(JSON.parse((await runCli(['version', '-o', 'json'])).stdout)).toHaveProperty('client');
    await server.stop();
  });
});
