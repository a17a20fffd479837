import { eventually, temporaryDirectory } from '@bulwark/testing';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deadlineOf, middleProgram, startLayer, type Layer } from './layers/layer.js';
import { expectFleetStaysClosed, POLICY_COUNT, startServerWithPolicies } from './layers/policies.js';
import { sidecarState } from './layers/sidecar-state.js';
import { startSidecar, type Server, type Sidecar } from './programs.js';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly tookMs: number;
}

/** A call by a service whose sidecar this is. */
function call(sidecar: Sidecar, url: string, headers: Record<string, string> = {}): Promise<Answer> {
  const [host = '', port = ''] = sidecar.listen.split(':');
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, path: url, headers: { host: new URL(url).host, ...headers } });
    sent.once('error', reject);
    sent.once('response', (response) => {
      response.resume().once('end', () => {
        const tookMs = performance.now() - startedMs;
        resolve({ status: response.statusCode ?? 0, headers: response.headers, tookMs });
      });
    });
    sent.end();
  });
}

describe('three services in a row, each behind a sidecar that knows policies from a control plane', () => {
  const directory = temporaryDirectory('layers');
  let server: Server;
  let gateway: Sidecar;
  let backOffice: Sidecar;
  let front: Layer;
  let middle: Layer;
  let leaf: Layer;

  beforeAll(async () => {
    server = await startServerWithPolicies(directory.path);
    const flags = (upstreams: Readonly<Record<string, string>>) => [
      ...['--control-plane', server.grpc],
      ...Object.entries(upstreams).flatMap(([name, url]) => ['--upstream', `${name}=${url}`]),
    ];
    leaf = await startLayer({ name: 'leaf', program: 'node', sidecar: flags({}) });
    middle = await startLayer({
      ...{ name: 'middle', program: middleProgram(), next: 'leaf' },
      sidecar: flags({ leaf: leaf.url }),
    });
    front = await startLayer({
      ...{ name: 'front', program: 'node', next: 'middle' },
      sidecar: flags({ middle: middle.url }),
    });
    const caller = (name: string) => ['--service', name, '--namespace', 'shop'];
    const upstreams = flags({ front: front.url, prices: leaf.url });
    gateway = await startSidecar([...caller('gateway'), ...upstreams]);
    backOffice = await startSidecar([...caller('back-office'), ...upstreams]);
    for (const sidecar of [gateway, backOffice, front.sidecar, middle.sidecar]) {
      await eventually(async () => (await sidecarState(sidecar)).policies.length === POLICY_COUNT, {
        withinMs: 10_000,
      });
    }
  });

  afterAll(async () => {
    await Promise.all([gateway, backOffice].map((sidecar) => sidecar?.process.stop()));
    await Promise.all([front, middle, leaf].map((layer) => layer?.stop()));
    await server?.process.stop();
    directory.remove();
  });

  it('S4.10: a dead leaf sees at most 3 calls, of one trace and numbered, where naive nesting makes 27', async () => {
    const answer = await call(gateway, 'http://front/dead?once');
    expect([answer.status, answer.headers['bulwark-retry']]).toEqual([503, 'exhausted']);
    const seen = leaf.service.seen('/dead?once');
    expect(seen.map(({ attempt }) => attempt)).toEqual([null, '2', '3']);
    expect(new Set(seen.map(({ traceparent }) => traceparent?.slice(0, 35))).size).toBe(1);
    expect(middle.service.seen('/dead?once')).toHaveLength(1);
    expect(front.service.seen('/dead?once')).toHaveLength(1);
  });

  it('S4.10: services that do not pass `traceparent` on cannot be joined, and the same test sees 9 and 27', async () => {
    await call(gateway, 'http://front/dead?forgets=middle');
    expect(leaf.service.seen('/dead?forgets=middle')).toHaveLength(9);
    await call(gateway, 'http://front/dead?forgets=front&forgets=middle');
    expect(leaf.service.seen('/dead?forgets=front&forgets=middle')).toHaveLength(27);
  });

  it('hands the first caller’s deadline down to the leaf, less what has passed at each layer', async () => {
    const path = '/well?pause=front&pause=middle';
    const answer = await call(gateway, `http://front${path}`, { 'bulwark-deadline': '3000' });
    expect(answer.status).toBe(200);
    const [atFront, atMiddle, atLeaf] = [front, middle, leaf].map((layer) =>
      deadlineOf(layer.service.seen(path)[0]),
    );
    // The policies alone would give each layer 10 s. Pauses are 150 ms.
    expect(atFront).toBeLessThanOrEqual(3000);
    expect(atMiddle).toBeLessThanOrEqual(atFront! - 145);
    expect(atLeaf).toBeLessThanOrEqual(atMiddle! - 145);
    expect(atLeaf).toBeGreaterThan(0);
  });

  it('S4.7: does not call the leaf for a caller whose time is up, though the service in the middle would', async () => {
    const path = '/well?late&pause=middle';
    const before = (await sidecarState(middle.sidecar)).sidecar.outbound.accepted;
    const answer = await call(gateway, `http://front${path}`, { 'bulwark-deadline': '100' });
    expect(answer.status).toBe(504);
    expect(answer.tookMs).toBeLessThan(1_000);
    await eventually(() => middle.service.seen(path).length === 1);
    // Until the middle service has called on, after its pause.
    await eventually(async () => {
      const { accepted, unfinished } = (await sidecarState(middle.sidecar)).sidecar.outbound;
      return accepted > before && unfinished === 0;
    });
    expect(leaf.service.seen(path)).toEqual([]);
  });

  it('trips nothing by 1,000 calls with a deadline of 1 ms, while another caller’s calls go on succeeding', async () => {
    let impatient = true;
    const patient = (async () => {
      const answers: Answer[] = [];
      while (impatient || answers.length < 5)
        answers.push(await call(backOffice, 'http://prices/well?pause=leaf'));
      return answers;
    })();
    const hurried: Answer[] = [];
    const hurry = async () => {
      while (hurried.length < 1_000) {
        hurried.push(
          await call(gateway, 'http://prices/well?hurried&pause=leaf', { 'bulwark-deadline': '1' }),
        );
      }
    };
    await Promise.all(Array.from({ length: 10 }, hurry));
    impatient = false;
    const answers = await patient;
    expect(new Set(hurried.map(({ status }) => status))).toEqual(new Set([504]));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    for (const sidecar of [gateway, backOffice]) {
      const prices = (await sidecarState(sidecar)).policies.find(({ service }) => service === 'prices')!;
      expect(prices.breakers.map(({ state }) => state)).toEqual(['closed']);
      // Enough calls were made, and cut short, to trip by either rule if they counted.
      if (sidecar === gateway) expect(prices.totals!.attempts).toBeGreaterThan(20);
    }
    await expectFleetStaysClosed(server);
    expect((await call(gateway, 'http://prices/well')).status).toBe(200);
  });
});
