import { eventually, freePort } from '@bulwark/testing';
import type { IncomingHttpHeaders } from 'node:http';
import { connect as tcpConnect, createServer as createTcpServer, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { admin, atEnd, cleanUp, fraudSpec, sidecar, upstream, via } from './sidecar-fixture.js';

afterEach(cleanUp);

describe('the sidecar as a proxy', () => {
  it('passes a call on in absolute form and by Host header, with the headers a proxy should leave and take', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const url = await upstream((request, response) => {
      seen.push(request.headers);
      response.writeHead(201, { 'X-Up': 'yes', Connection: 'X-Hop, keep-alive', 'X-Hop': '1' });
      response.end(`${request.method} ${request.url}`);
    });
    const { listen } = await sidecar([], { 'fraud-api': url });
    const reply = await via(listen, 'http://fraud-api/check?id=1', {
      headers: { 'proxy-connection': 'keep-alive', connection: 'x-private', 'x-private': '1', 'x-kept': '2' },
    });
    expect(reply).toMatchObject({ status: 201, body: 'GET /check?id=1' });
    expect(reply.headers).toMatchObject({
      'x-up': 'yes',
      via: expect.stringMatching(/^1\.1 bulwark-/) as string,
    });
    expect(reply.headers['x-hop']).toBeUndefined();
    expect(seen[0]).toMatchObject({
      host: 'fraud-api',
      'x-kept': '2',
      via: expect.stringMatching(/^1\.1 bulwark-/) as string,
    });
    expect(seen[0]).not.toHaveProperty('x-private');
    expect(seen[0]).not.toHaveProperty('proxy-connection');
    const byHost = await via(listen, 'http://fraud-api/plain');
    expect(byHost.body).toBe('GET /plain');
  });

  it('streams bodies both ways and keeps trailers', async () => {
    const url = await upstream((request, response) => {
      response.writeHead(200, { Trailer: 'X-Sum' });
      let bytes = 0;
      request.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        response.write(chunk);
      });
      request.on('end', () => {
        response.addTrailers({ 'X-Sum': String(bytes) });
        response.end();
      });
    });
    const { listen } = await sidecar([fraudSpec], { 'fraud-api': url });
    const body = 'x'.repeat(1_000_000);
    const chunked = { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body };
    for (const options of [{ method: 'POST', body }, chunked]) {
      const reply = await via(listen, 'http://fraud-api/echo', options);
      expect(reply.body.length).toBe(1_000_000);
      expect(reply.trailers).toEqual({ 'x-sum': '1000000' });
    }
  });

  it('answers 502 with a problem when nobody listens, and dials unknown names as they are', async () => {
    const { listen } = await sidecar([], { 'fraud-api': `http://127.0.0.1:${await freePort()}` });
    const reply = await via(listen, 'http://fraud-api/x');
    expect(reply.status).toBe(502);
    expect(JSON.parse(reply.body)).toMatchObject({ status: 502, service: 'fraud-api' });
    const url = await upstream((_request, response) => response.end('direct'));
    expect((await via(listen, `${url}/y`)).body).toBe('direct');
  });

  it('refuses to call itself, to tunnel, and what is no target', async () => {
    const { listen } = await sidecar([], {});
    expect((await via(listen, `http://127.0.0.1:${listen}/x`)).status).toBe(421);
    const answer = await rawAnswer(listen, 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 501 /);
    expect(answer).toContain('--upstream');
  });

  it('refuses with a problem what it cannot read, or would have to strip or guess at', async () => {
    let calls = 0;
    const url = await upstream((_request, response) => {
      calls += 1;
      response.end('ok');
    });
    const { listen } = await sidecar([], { one: url });
    const close = 'Connection: close\r\n';
    const upgrade = (to: string) => `Connection: keep-alive, Upgrade\r\nUpgrade: ${to}\r\n`;
    const refused: [status: number, request: string, says: string][] = [
      [400, `GET ftp://one/ HTTP/1.1\r\nHost: one\r\n${close}\r\n`, 'not ftp'],
      [400, `GET / HTTP/1.1\r\nHost: one\r\nHost: two\r\n${close}\r\n`, 'this one has 2'],
      [400, `GET http://one/ HTTP/1.1\r\n${close}\r\n`, 'this one has 0'],
      [501, `GET / HTTP/1.1\r\nHost: one\r\n${upgrade('websocket')}\r\n`, 'upgrade to websocket'],
      [400, 'GET / HTTP/1.1\r\nHost: one\r\nBad Header\r\n\r\n', 'cannot be read'],
      [431, `GET / HTTP/1.1\r\nHost: one\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, 'cannot be read'],
    ];
    for (const [status, request, says] of refused) {
      const answer = await rawAnswer(listen, request);
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(answer).toMatch(/content-type: application\/problem\+json/i);
      expect(answer).toContain(says);
    }
    expect(calls).toBe(0);
    const offer = `GET / HTTP/1.1\r\nHost: one.\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n`;
    expect(await rawAnswer(listen, offer)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('notices that a call came back to it through another proxy', async () => {
    const port = await freePort();
    const second = await sidecar([], { x: `http://127.0.0.1:${port}` });
    const first = await sidecar([], { x: `http://127.0.0.1:${second.listen}` }, [
      '--listen',
      `127.0.0.1:${port}`,
    ]);
    const reply = await via(first.listen, 'http://x/y');
    expect(reply.status).toBe(508);
    expect(reply.body).toContain('came back');
  });

  it('cancels the upstream when the caller goes away, and nobody is to blame', async () => {
    let closed = 0;
    const url = await upstream((_request, response) => void response.once('close', () => (closed += 1)));
    const running = await sidecar([{ ...fraudSpec, timeout: { total: '20s' } }], { 'fraud-api': url });
    const gone = new AbortController();
    const call = via(running.listen, 'http://fraud-api/slow', { signal: gone.signal }).catch(() => 'gone');
    await eventually(async () => (await admin(running.admin, '/state')).body.includes('"inFlight": 1'));
    gone.abort();
    expect(await call).toBe('gone');
    await eventually(() => closed === 1);
    const state = await admin(running.admin, '/state');
    expect(JSON.parse(state.body)).toMatchObject({ policies: [{ totals: { cancelled: 1, failed: 0 } }, {}] });
  });

  it('does not take the end of an idle connection for a failure of the upstream', async () => {
    let connections = 0;
    const server = createTcpServer((socket) => {
      connections += 1;
      let requests = 0;
      socket.on('error', () => undefined);
      socket.on('data', () => {
        requests += 1;
        if (requests > 1) socket.resetAndDestroy();
        else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => new Promise((resolve) => server.close(resolve)));
    const { port } = server.address() as AddressInfo;
    const running = await sidecar([fraudSpec], { 'fraud-api': `http://127.0.0.1:${port}` });
    for (let count = 0; count < 5; count += 1) {
      expect((await via(running.listen, 'http://fraud-api/x')).body).toBe('ok');
    }
    expect(connections).toBe(5);
    const { body } = await admin(running.admin, '/state');
    expect(JSON.parse(body)).toMatchObject({ policies: [{ totals: { attempts: 5, failed: 0 } }, {}] });
  });

  it('cuts an answer that breaks off, so that a half one never looks whole', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf');
        setTimeout(() => socket.destroy(), 20);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => new Promise((resolve) => server.close(resolve)));
    const { port } = server.address() as AddressInfo;
    const { listen } = await sidecar([fraudSpec], { 'fraud-api': `http://127.0.0.1:${port}` });
    await expect(via(listen, 'http://fraud-api/x')).rejects.toThrow();
  });
});

/** Everything that comes back until the proxy ends the connection. */
function rawAnswer(port: number, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = tcpConnect(port, '127.0.0.1', () => socket.write(request));
    atEnd(() => socket.destroy());
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
  });
}
