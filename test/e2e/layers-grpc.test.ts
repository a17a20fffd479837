import { connect, type Bulwark } from '@bulwark/agent';
import { eventually, startProcess, temporaryDirectory } from '@bulwark/testing';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rowClient, type RowClient } from './layers/grpc-client.js';
import { hurryBesidePatience } from './layers/hurried-callers.js';
import { deadlineOf, serviceOf, tsProgram, type Service } from './layers/layer.js';
import { expectFleetStaysClosed, POLICY_COUNT, startServerWithPolicies } from './layers/policies.js';
import type { Server } from './programs.js';

interface GrpcService extends Service {
  /** "host:port". */
  readonly address: string;
}

describe('three gRPC services in a row, each a process with the SDK inside', () => {
  const directory = temporaryDirectory('layers-grpc');
  const clients: RowClient[] = [];
  let server: Server;
  let leaf: GrpcService;
  let middle: GrpcService;
  let front: GrpcService;
  let gateway: Bulwark;
  let backOffice: Bulwark;

  async function startService(name: string, next?: GrpcService): Promise<GrpcService> {
    const below = next === undefined ? [] : [next.name, next.address];
    const args = [server.grpc, name, '0', ...below];
    const running = await startProcess(tsProgram('./grpc-service.ts', args));
    const line = await running.waitForLine(/^listening on /, { withinMs: 20_000 });
    return { ...serviceOf(name, running), address: line.replace('listening on ', '') };
  }

  async function startCaller(service: string): Promise<Bulwark> {
    const bulwark = await connect({ namespace: 'shop', service, controlPlane: server.grpc });
    await eventually(() => bulwark.state().policies.length === POLICY_COUNT, { withinMs: 10_000 });
    return bulwark;
  }

  function clientOf(bulwark: Bulwark, service: string, { address }: GrpcService): RowClient['get'] {
    const client = rowClient(address, { interceptors: [bulwark.grpc({ service })] });
    clients.push(client);
    return client.get;
  }

  beforeAll(async () => {
    server = await startServerWithPolicies(directory.path);
    leaf = await startService('leaf');
    middle = await startService('middle', leaf);
    front = await startService('front', middle);
    gateway = await startCaller('gateway');
    backOffice = await startCaller('back-office');
  });

  afterAll(async () => {
    for (const client of clients) client[Symbol.dispose]();
    await Promise.all([gateway, backOffice].map((bulwark) => bulwark?.close()));
    await Promise.all([front, middle, leaf].map((service) => service?.process.stop()));
    await server?.process.stop();
    directory.remove();
  });

  it('S4.10: a dead leaf sees at most 3 calls, numbered, where naive nesting makes 27', async () => {
    const { code, metadata } = await clientOf(gateway, 'front', front)('/dead');
    expect(code).toBe(status.UNAVAILABLE);
    expect(Number(metadata?.get('grpc-retry-pushback-ms')[0])).toBeLessThan(0);
    expect(leaf.seen('/dead').map(({ attempt }) => attempt)).toEqual([null, '2', '3']);
    expect([middle.seen('/dead').length, front.seen('/dead').length]).toEqual([1, 1]);
  });

  it('hands the first caller’s deadline down to the leaf, less what has passed at each layer', async () => {
    const path = '/well?pause=front&pause=middle';
    const { code } = await clientOf(gateway, 'front', front)(path, 3_000);
    expect(code).toBe(status.OK);
    const [atFront, atMiddle, atLeaf] = [front, middle, leaf].map((service) =>
      deadlineOf(service.seen(path)[0]),
    );
    // The policies alone would give each layer 10 s. Pauses are 150 ms.
    expect(atFront).toBeLessThanOrEqual(3_000);
    expect(atMiddle).toBeLessThanOrEqual(atFront! - 140);
    expect(atLeaf).toBeLessThanOrEqual(atMiddle! - 140);
    expect(atLeaf).toBeGreaterThan(0);
  });

  it('S4.7: does not call the leaf for a caller whose time is up, though the service in the middle would', async () => {
    const path = '/well?late&pause=middle';
    const { code } = await clientOf(gateway, 'front', front)(path, 100);
    expect(code).toBe(status.DEADLINE_EXCEEDED);
    await eventually(() => middle.seen(`ended ${path}`).length === 1);
    expect(leaf.seen(path)).toEqual([]);
  });

  it('trips nothing by 1,000 calls with a deadline of 1 ms, while another caller’s calls go on succeeding', async () => {
    const impatientCall = clientOf(gateway, 'prices', leaf);
    const patientCall = clientOf(backOffice, 'prices', leaf);
    const { hurried, patient } = await hurryBesidePatience(impatientCall, patientCall);
    expect([hurried.length, new Set(hurried)]).toEqual([1_000, new Set([status.DEADLINE_EXCEEDED])]);
    expect(new Set(patient)).toEqual(new Set([status.OK]));
    for (const bulwark of [gateway, backOffice]) {
      const found = bulwark.state().policies.find(({ service }) => service === 'prices')!;
      expect(found.breakers.map(({ state }) => state)).toEqual(['closed']);
      // Enough calls were made, and cut short, to trip by either rule if they counted.
      if (bulwark === gateway) expect(found.totals!.attempts).toBeGreaterThan(20);
    }
    await expectFleetStaysClosed(server);
    expect((await impatientCall('/well?after')).code).toBe(status.OK);
  });
});
