import { eventually, temporaryDirectory } from '@bulwark/testing';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rowClient, type RowClient } from './layers/grpc-client.js';
import { hurryBesidePatience } from './layers/hurried-callers.js';
import { deadlineOf, startLayer, type Layer } from './layers/layer.js';
import { expectFleetStaysClosed, POLICY_COUNT, startServerWithPolicies } from './layers/policies.js';
import { sidecarState } from './layers/sidecar-state.js';
import { startSidecar, type Server, type Sidecar } from './programs.js';

describe('three plain gRPC services in a row, each behind a sidecar', () => {
  const directory = temporaryDirectory('layers-grpc-sidecar');
  const clients: RowClient[] = [];
  let server: Server;
  let gateway: Sidecar;
  let backOffice: Sidecar;
  let front: Layer;
  let middle: Layer;
  let leaf: Layer;

  /** Calls a service through the sidecar of the caller. */
  function through(sidecar: Sidecar, service: string): RowClient['get'] {
    const client = rowClient(sidecar.listen, { 'grpc.default_authority': service });
    clients.push(client);
    return client.get;
  }

  beforeAll(async () => {
    server = await startServerWithPolicies(directory.path);
    const flags = (upstreams: Readonly<Record<string, string>>) => [
      ...['--control-plane', server.grpc],
      ...Object.entries(upstreams).flatMap(([name, url]) => ['--upstream', `${name}=${url}`]),
    ];
    const program = 'grpc';
    leaf = await startLayer({ name: 'leaf', program, sidecar: flags({}) });
    middle = await startLayer({ name: 'middle', program, next: 'leaf', sidecar: flags({ leaf: leaf.url }) });
    front = await startLayer({
      ...{ name: 'front', program, next: 'middle' },
      sidecar: flags({ middle: middle.url }),
    } as const);
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
    for (const client of clients) client[Symbol.dispose]();
    await Promise.all([gateway, backOffice].map((sidecar) => sidecar?.process.stop()));
    await Promise.all([front, middle, leaf].map((layer) => layer?.stop()));
    await server?.process.stop();
    directory.remove();
  });

  it('S4.10: a dead leaf sees at most 3 calls, of one trace and numbered, where naive nesting makes 27', async () => {
    const { code, metadata } = await through(gateway, 'front')('/dead');
    expect(code).toBe(status.UNAVAILABLE);
    expect(Number(metadata?.get('grpc-retry-pushback-ms')[0])).toBeLessThan(0);
    const seen = leaf.service.seen('/dead');
    expect(seen.map(({ attempt }) => attempt)).toEqual([null, '2', '3']);
    expect(new Set(seen.map(({ traceparent }) => traceparent?.slice(0, 35))).size).toBe(1);
    expect([middle.service.seen('/dead').length, front.service.seen('/dead').length]).toEqual([1, 1]);
  });

  it('hands the first caller’s deadline down to the leaf, less what has passed at each layer', async () => {
    const path = '/well?pause=front&pause=middle';
    const { code, details } = await through(gateway, 'front')(path, 3_000);
    expect(code, details).toBe(status.OK);
    const [atFront, atMiddle, atLeaf] = [front, middle, leaf].map((layer) =>
      deadlineOf(layer.service.seen(path)[0]),
    );
    // The policies alone would give each layer 10 s. Pauses are 150 ms.
    expect(atFront).toBeLessThanOrEqual(3_000);
    expect(atMiddle).toBeLessThanOrEqual(atFront! - 140);
    expect(atLeaf).toBeLessThanOrEqual(atMiddle! - 140);
    expect(atLeaf).toBeGreaterThan(0);
  });

  it('S4.7: does not call the leaf for a caller whose time is up, though the service in the middle would', async () => {
    const path = '/well?late&pause=middle';
    const { code } = await through(gateway, 'front')(path, 100);
    expect(code).toBe(status.DEADLINE_EXCEEDED);
    await eventually(() => middle.service.seen(`ended ${path}`).length === 1);
    expect(leaf.service.seen(path)).toEqual([]);
  });

  it('trips nothing by 1,000 calls with a deadline of 1 ms, while another caller’s calls go on succeeding', async () => {
    const impatientCall = through(gateway, 'prices');
    const patientCall = through(backOffice, 'prices');
    const { hurried, patient } = await hurryBesidePatience(impatientCall, patientCall);
    expect([hurried.length, new Set(hurried)]).toEqual([1_000, new Set([status.DEADLINE_EXCEEDED])]);
    expect(new Set(patient)).toEqual(new Set([status.OK]));
    for (const sidecar of [gateway, backOffice]) {
      const prices = (await sidecarState(sidecar)).policies.find(({ service }) => service === 'prices')!;
      expect(prices.breakers.map(({ state }) => state)).toEqual(['closed']);
      // Enough calls were made, and cut short, to trip by either rule if they counted.
      if (sidecar === gateway) expect(prices.totals!.attempts).toBeGreaterThan(20);
    }
    await expectFleetStaysClosed(server);
    expect((await impatientCall('/well?after')).code).toBe(status.OK);
  });
});
