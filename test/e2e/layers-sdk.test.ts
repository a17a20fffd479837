import { connect, type Bulwark } from '@bulwark/agent';
import { eventually, startProcess, temporaryDirectory } from '@bulwark/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deadlineOf, serviceOf, tsProgram, type Service } from './layers/layer.js';
import { expectFleetStaysClosed, POLICY_COUNT, startServerWithPolicies } from './layers/policies.js';
import type { Server } from './programs.js';

interface SdkService extends Service {
  readonly url: string;
}

describe('three services in a row, each a process with the SDK inside', () => {
  const directory = temporaryDirectory('layers-sdk');
  let server: Server;
  let leaf: SdkService;
  let middle: SdkService;
  let front: SdkService;
  let gateway: Bulwark;
  let backOffice: Bulwark;

  async function startService(name: string, next?: SdkService): Promise<SdkService> {
    const below = next === undefined ? [] : [next.name, next.url];
    const running = await startProcess(tsProgram('./sdk-service.ts', [name, server.grpc, ...below]));
    const line = await running.waitForLine(/^listening on /, { withinMs: 20_000 });
    return { ...serviceOf(name, running), url: line.replace('listening on ', '') };
  }

  async function startCaller(service: string): Promise<Bulwark> {
    const bulwark = await connect({ namespace: 'shop', service, controlPlane: server.grpc });
    await eventually(() => bulwark.state().policies.length === POLICY_COUNT, { withinMs: 10_000 });
    return bulwark;
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
    await Promise.all([gateway, backOffice].map((bulwark) => bulwark?.close()));
    await Promise.all([front, middle, leaf].map((service) => service?.process.stop()));
    await server?.process.stop();
    directory.remove();
  });

  const get = async (path: string, deadlineMs?: number) => {
    const guard = { service: 'front', ...(deadlineMs !== undefined && { deadlineMs }) };
    const answer = await gateway.fetch(`${front.url}${path}`, { bulwark: guard });
    await answer.text();
    return answer;
  };

  it('S4.10: a dead leaf sees at most 3 calls, numbered, where naive nesting makes 27', async () => {
    const answer = await get('/dead');
    expect([answer.status, answer.headers.get('bulwark-retry')]).toEqual([503, 'exhausted']);
    expect(leaf.seen('/dead').map(({ attempt }) => attempt)).toEqual([null, '2', '3']);
    expect([middle.seen('/dead').length, front.seen('/dead').length]).toEqual([1, 1]);
  });

  it('hands the first caller’s deadline down to the leaf, less what has passed at each layer', async () => {
    const path = '/well?pause=front&pause=middle';
    expect((await get(path, 3_000)).status).toBe(200);
    const [atFront, atMiddle, atLeaf] = [front, middle, leaf].map((service) =>
      deadlineOf(service.seen(path)[0]),
    );
    // The policies alone would give each layer 10 s. Pauses are 150 ms.
    expect(atFront).toBeLessThanOrEqual(3_000);
    expect(atMiddle).toBeLessThanOrEqual(atFront! - 145);
    expect(atLeaf).toBeLessThanOrEqual(atMiddle! - 145);
    expect(atLeaf).toBeGreaterThan(0);
  });

  it('S4.7: does not call the leaf for a caller whose time is up, though the service in the middle would', async () => {
    const path = '/well?late&pause=middle';
    expect((await get(path, 100)).status).toBe(504);
    await eventually(() => middle.seen(`ended ${path}`).length === 1);
    expect(leaf.seen(path)).toEqual([]);
  });

  it('trips nothing by 1,000 calls with a deadline of 1 ms, while another caller’s calls go on succeeding', async () => {
    const prices = (bulwark: Bulwark, path: string, deadlineMs?: number) => {
      const guard = { service: 'prices', ...(deadlineMs !== undefined && { deadlineMs }) };
      return bulwark.fetch(`${leaf.url}${path}&pause=leaf`, { bulwark: guard });
    };
    let impatient = true;
    const patient = (async () => {
      const statuses: number[] = [];
      while (impatient || statuses.length < 5) {
        const answer = await prices(backOffice, '/well?patient');
        await answer.text();
        statuses.push(answer.status);
      }
      return statuses;
    })();
    const hurried: number[] = [];
    const hurry = async () => {
      for (let n = 0; n < 100; n += 1) hurried.push((await prices(gateway, '/well?hurried', 1)).status);
    };
    await Promise.all(Array.from({ length: 10 }, hurry));
    impatient = false;
    const statuses = await patient;
    expect([hurried.length, new Set(hurried)]).toEqual([1_000, new Set([504])]);
    expect(new Set(statuses)).toEqual(new Set([200]));
    for (const bulwark of [gateway, backOffice]) {
      const found = bulwark.state().policies.find(({ service }) => service === 'prices')!;
      expect(found.breakers.map(({ state }) => state)).toEqual(['closed']);
      // Enough calls were made, and cut short, to trip by either rule if they counted.
      if (bulwark === gateway) expect(found.totals!.attempts).toBeGreaterThan(20);
    }
    await expectFleetStaysClosed(server);
    expect((await prices(gateway, '/well?after')).status).toBe(200);
  });
});
