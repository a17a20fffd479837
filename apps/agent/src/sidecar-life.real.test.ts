import { eventually } from '@bulwark/testing';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { runSidecar } from './index.js';
import {
  admin,
  agent,
  atEnd,
  cleanUp,
  fraudSpec,
  quiet,
  send,
  sidecar,
  upstream,
  via,
} from './sidecar-fixture.js';

afterEach(cleanUp);

describe('the sidecar’s life', () => {
  it('says what it is doing at its admin port', async () => {
    const url = await upstream((_request, response) => response.end('ok'));
    const running = await sidecar([fraudSpec], { 'fraud-api': url });
    await via(running.listen, 'http://fraud-api/x');
    expect(await admin(running.admin, '/healthz')).toMatchObject({ status: 200 });
    const ready = await admin(running.admin, '/readyz');
    expect(ready.status).toBe(200);
    expect(ready.body).toContain('not connected to the control plane at 127.0.0.1:1: connection refused\n');
    const { body } = await admin(running.admin, '/metrics');
    expect(body).toContain('bulwark_calls_total{policy="default/fraud-api"} 1');
    expect(body).toContain('bulwark_call_attempts_total{policy="default/fraud-api",attempt="first"} 1');
    expect(body).toMatch(
      /bulwark_breaker_state\{policy="default\/fraud-api",key="target",state="closed",scope="local"\} 1/,
    );
    expect(body).toContain('bulwark_call_duration_seconds_count{service="fraud-api",outcome="ok"} 1');
    expect(body).toContain('bulwark_control_plane_connected 0');
    expect((await admin(running.admin, '/nothing')).body).toContain('/state');
  });

  it('shows its state to no page of the web that makes its own name mean this machine', async () => {
    const { admin: port } = await sidecar([], {});
    for (const host of ['localhost', `127.0.0.1:${port}`, '[::1]:1']) {
      expect((await send(port, '/state', { headers: { host } })).status, host).toBe(200);
    }
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example', '10.0.0.1']) {
      expect((await send(port, '/state', { headers: { host } })).status, host).toBe(403);
    }
  });

  it('drains on SIGTERM: readiness off, new calls refused, accepted ones answered, exit 0', async () => {
    let release: () => void = () => undefined;
    const url = await upstream((_request, response) => (release = () => response.end('late')));
    const running = await sidecar([], { 'fraud-api': url });
    const accepted = via(running.listen, 'http://fraud-api/slow');
    await eventually(async () =>
      (await admin(running.admin, '/metrics')).body.includes('bulwark_proxy_in_flight 1'),
    );
    running.signal();
    expect((await admin(running.admin, '/readyz')).status).toBe(503);
    const refused = await via(running.listen, 'http://fraud-api/new');
    expect([refused.status, refused.headers.connection]).toEqual([503, 'close']);
    release();
    expect((await accepted).body).toBe('late');
    expect(await running.exit).toBe(0);
    expect(running.logs.at(-1)).toMatchObject({
      fields: { accepted: 1, completed: 1, refused: 1, unfinished: 0 },
    });
  });

  it('exits 1 and says how many were cut off when the deadline passes', async () => {
    const url = await upstream(() => undefined);
    const running = await sidecar([], { 'fraud-api': url }, ['--drain-timeout', '100ms']);
    const accepted = via(running.listen, 'http://fraud-api/never').catch(() => 'cut');
    await eventually(async () =>
      (await admin(running.admin, '/metrics')).body.includes('bulwark_proxy_in_flight 1'),
    );
    running.signal();
    expect(await running.exit).toBe(1);
    expect(await accepted).toBe('cut');
    expect(running.logs.at(-1)).toMatchObject({ fields: { accepted: 1, completed: 0, unfinished: 1 } });
  });

  it('ends at once at a second signal', async () => {
    const url = await upstream(() => undefined);
    const running = await sidecar([], { 'fraud-api': url });
    const accepted = via(running.listen, 'http://fraud-api/never').catch(() => 'cut');
    await eventually(async () =>
      (await admin(running.admin, '/metrics')).body.includes('bulwark_proxy_in_flight 1'),
    );
    running.signal();
    running.signal('SIGINT');
    expect(await running.exit).toBe(1);
    agent.destroy();
    expect(await accepted).toBe('cut');
  });

  it('says which port is taken and which flag changes it', async () => {
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
    atEnd(() => new Promise((resolve) => blocker.close(resolve)));
    const { port } = blocker.address() as AddressInfo;
    for (const flag of ['--listen', '--admin']) {
      let said = '';
      const rest = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'];
      rest[rest.indexOf(flag) + 1] = `127.0.0.1:${port}`;
      const io = { ...quiet(), err: (text: string) => (said += text) };
      expect(await runSidecar(['--service', 's', ...rest], {}, io)).toBe(1);
      expect(said).toContain(`port ${port} on 127.0.0.1 is taken`);
      expect(said).toContain(flag);
    }
  });

  it('exits 64 with every problem and a hint when it is used wrongly', async () => {
    let said = '';
    const io = { ...quiet(), err: (text: string) => (said += text) };
    const argv = ['--service', 'Store Front', '--control-plane', 'nowhere', '--namespace', 'a/b'];
    expect(await runSidecar(argv, {}, io)).toBe(64);
    expect(said).toMatch(/"a\/b"[\s\S]*"Store Front"[\s\S]*"nowhere"[\s\S]*--help/);
    said = '';
    expect(
      await runSidecar(
        ['--service', 's', '--bootstrap', '/nothing/here'],
        {},
        { ...io, logger: quiet().logger },
      ),
    ).toBe(64);
    expect(said).toContain('bootstrap /nothing/here');
  });
});
