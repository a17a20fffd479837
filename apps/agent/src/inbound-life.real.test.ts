import { eventually, freePort } from '@bulwark/testing';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { runSidecar } from './index.js';
import { admin, atEnd, cleanUp, inbound, quiet, send, sidecar, upstream, via } from './sidecar-fixture.js';

afterEach(cleanUp);

/** A service that answers when the test says so, or calls `next` first. */
async function heldService(): Promise<{ readonly url: string; readonly held: ServerResponse[] }> {
  const held: ServerResponse[] = [];
  const listener: RequestListener = (_request, response) => void held.push(response);
  return { url: await upstream(listener), held };
}

describe('the life of a sidecar with two sides', () => {
  it('S10: drains the inbound side first; what was accepted still makes its own calls, and is answered', async () => {
    const service = await heldService();
    const next = await upstream((_request, response) => response.end('from next'));
    const running = await inbound(service.url, [], { next }, ['--trusted-peers', '127.0.0.1/32']);
    const accepted = send(running.inbound, '/');
    await eventually(() => service.held.length === 1);
    running.signal();
    const ready = await admin(running.admin, '/readyz');
    expect([ready.status, ready.body]).toEqual([503, 'shutting down\n']);
    const refused = await send(running.inbound, '/');
    expect([refused.status, refused.headers.connection]).toEqual([503, 'close']);
    expect(refused.headers['bulwark-rejected']).toBe('draining');
    const stranger = await send(running.inbound, '/', { localAddress: '127.0.0.2' });
    expect([stranger.status, stranger.headers['bulwark-rejected']]).toEqual([503, undefined]);
    const own = await via(running.listen, 'http://next/');
    service.held[0]?.end(own.body);
    expect((await accepted).body).toBe('from next');
    expect(await running.exit).toBe(0);
    expect(running.logs.at(-1)).toMatchObject({
      fields: {
        ...{ accepted: 2, completed: 2, refused: 2, unfinished: 0 },
        inbound: { accepted: 1, completed: 1, refused: 2, unfinished: 0 },
        outbound: { accepted: 1, completed: 1, refused: 0, unfinished: 0 },
      },
    });
  });

  it('S10: one time limit is for both sides; what it cuts off is counted, and the exit code is 1', async () => {
    const service = await heldService();
    const next = await heldService();
    const running = await inbound(service.url, [], { next: next.url }, ['--drain-timeout', '200ms']);
    const cut = [send(running.inbound, '/'), via(running.listen, 'http://next/')].map((call) =>
      call.then(
        () => 'answered',
        () => 'cut',
      ),
    );
    await eventually(() => service.held.length === 1 && next.held.length === 1);
    const began = performance.now();
    running.signal();
    expect(await running.exit).toBe(1);
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(await Promise.all(cut)).toEqual(['cut', 'cut']);
    expect(running.logs.at(-1)).toMatchObject({
      fields: { unfinished: 2, inbound: { unfinished: 1 }, outbound: { unfinished: 1 } },
    });
  });

  it('S10: an instance that drains is no failure to its callers, and another one takes their calls', async () => {
    const [leaving, staying] = [
      await heldService(),
      await upstream((_request, response) => response.end('ok')),
    ];
    const first = await inbound(leaving.url);
    const second = await inbound(staying);
    let turn = 0;
    // What stands before several instances: each connection goes to the next one.
    const balancer = await upstream((request, response) => {
      turn += 1;
      const port = turn % 2 === 1 ? first.inbound : second.inbound;
      void send(port, request.url ?? '/').then((reply) => {
        response.writeHead(reply.status, reply.headers);
        response.end(reply.body);
      });
    });
    const retry = { maxAttempts: 3, backoff: { base: '1ms', max: '2ms' } };
    const circuitBreaker = {
      scope: 'Instance',
      trip: { consecutiveFailures: 2 },
      cooldown: { initial: '30s' },
    };
    const policy = { target: { service: 'next' }, timeout: { total: '5s' }, retry, circuitBreaker };
    const caller = await sidecar([policy], { next: balancer });
    const held = send(first.inbound, '/').catch(() => undefined);
    await eventually(() => leaving.held.length === 1);
    first.signal();
    for (let count = 0; count < 5; count += 1) {
      turn = 0;
      expect((await via(caller.listen, 'http://next/')).body).toBe('ok');
    }
    const state = JSON.parse((await admin(caller.admin, '/state')).body) as { policies: unknown[] };
    expect(state.policies[0]).toMatchObject({
      breakers: [{ state: 'closed' }],
      totals: { calls: 5, attempts: 10, failed: 0 },
    });
    leaving.held[0]?.end();
    await held;
  });

  it('shows both sides, the join, and a bypass', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'bulwark-bypass-'));
    atEnd(() => rmSync(directory, { recursive: true, force: true }));
    const bypass = join(directory, 'out');
    writeFileSync(bypass, '30m\nthe guards are wrong');
    const app = await upstream((_request, response) => response.end('ok'));
    const policy = { target: { service: 'next' }, retry: { maxAttempts: 3 } };
    const dead = `http://127.0.0.1:${await freePort()}`;
    const running = await inbound(app, [policy], { next: dead }, ['--bypass-file', bypass]);
    await send(running.inbound, '/');
    expect((await via(running.listen, 'http://next/')).status).toBe(502);
    const ready = await admin(running.admin, '/readyz');
    expect(ready.status).toBe(200);
    expect(ready.body).toMatch(/bypass until .*the guards are wrong/);
    const state = JSON.parse((await admin(running.admin, '/state')).body) as object;
    expect(state).toMatchObject({
      bypass: { reason: 'the guards are wrong' },
      sidecar: {
        outbound: { accepted: 1, completed: 1 },
        inbound: { accepted: 1, completed: 1, refused: 0, unfinished: 0 },
        join: { callsInFlight: 0, parent: 0, trace: 0, late: 0, none: 1, overflow: 0 },
      },
    });
    const { body } = await admin(running.admin, '/metrics');
    for (const line of [
      'bulwark_bypass 1',
      'bulwark_inbound_in_flight 0',
      'bulwark_inbound_call_duration_seconds_count{outcome="ok"} 1',
      'bulwark_join_lookups_total{found="none"} 1',
      'bulwark_join_overflow_total 0',
    ]) {
      expect(body).toContain(`${line}\n`);
    }
  });

  it('says that the port of the inbound side is taken, and by which flag to choose another', async () => {
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
    atEnd(() => new Promise((resolve) => blocker.close(resolve)));
    const { port } = blocker.address() as AddressInfo;
    let said = '';
    const argv = ['--service', 's', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
    const side = ['--inbound', `127.0.0.1:${port}`, '--app', 'http://127.0.0.1:9'];
    const io = { ...quiet(), err: (text: string) => (said += text) };
    expect(await runSidecar([...argv, ...side], {}, io)).toBe(1);
    expect(said).toContain(`port ${port} on 127.0.0.1 is taken`);
    expect(said).toContain('--inbound');
  });
});
