import { eventually, freePort } from '@bulwark/testing';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import {
  connect as tcpConnect,
  createServer as createTcpServer,
  type AddressInfo,
  type Socket,
} from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { admin, atEnd, cleanUp, inbound, send, upstream } from './sidecar-fixture.js';

afterEach(cleanUp);

/** A server of bytes: `said` gets what a connection sends, and the connection. */
async function bytes(said: (text: string, socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => said(chunk.toString('latin1'), socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Everything that comes back until the connection ends or `until` is in it. */
function raw(port: number, request: string, until = '\0'): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = tcpConnect(port, '127.0.0.1', () => socket.write(request));
    atEnd(() => socket.destroy());
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (text.includes(until)) resolve(text);
    });
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
  });
}

describe('the inbound side as a reverse proxy', () => {
  it('passes a call to the service with the headers a proxy should leave and take', async () => {
    const seen: { url: string | undefined; headers: IncomingHttpHeaders }[] = [];
    const app = await upstream((request, response) => {
      seen.push({ url: request.url, headers: request.headers });
      response.writeHead(201, { 'X-App': 'yes', Connection: 'X-Hop, keep-alive', 'X-Hop': '1' });
      response.end('made');
    });
    const sides = await inbound(`${app}/base/`);
    const reply = await send(sides.inbound, '/things?id=1', {
      method: 'POST',
      headers: {
        ...{ host: 'shop.example', connection: 'x-private', 'x-private': '1', 'x-kept': '2' },
        ...{ 'x-forwarded-for': '192.0.2.9', authorization: 'Bearer t' },
      },
    });
    expect([reply.status, reply.body, reply.headers['x-app']]).toEqual([201, 'made', 'yes']);
    expect(reply.headers.via).toMatch(/^1\.1 bulwark-/);
    expect(reply.headers).not.toHaveProperty('x-hop');
    expect(seen[0]?.url).toBe('/base/things?id=1');
    expect(seen[0]?.headers).toMatchObject({
      ...{ host: 'shop.example', 'x-kept': '2', authorization: 'Bearer t' },
      'x-forwarded-for': '192.0.2.9, 127.0.0.1',
      via: expect.stringMatching(/^1\.1 bulwark-/) as string,
      traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/) as string,
    });
    expect(seen[0]?.headers).not.toHaveProperty('x-private');
    expect(seen[0]?.headers).not.toHaveProperty('bulwark-deadline');
    expect(seen[0]?.headers).not.toHaveProperty('bulwark-attempt');
  });

  it('passes a valid traceparent on as it is, and makes a new one in place of an invalid one', async () => {
    const seen: unknown[] = [];
    const app = await upstream((request, response) => {
      seen.push([request.headers['traceparent'], request.headers['tracestate']]);
      response.end();
    });
    const sides = await inbound(app);
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await send(sides.inbound, '/', { headers: { traceparent, tracestate: 'a=1' } });
    await send(sides.inbound, '/', { headers: { traceparent: `${traceparent}-x`, tracestate: 'a=1' } });
    expect(seen).toEqual([
      [traceparent, 'a=1'],
      [expect.stringMatching(/^00-(?!0af7)[0-9a-f]{32}-[0-9a-f]{16}-00$/), undefined],
    ]);
  });

  it('streams bodies both ways as they come, with the trailers of both', async () => {
    const app = await upstream((request, response) => {
      response.writeHead(200, { Trailer: 'X-Sum' });
      request.pipe(response, { end: false });
      request.on('end', () => {
        response.addTrailers({ 'X-Sum': request.trailers['x-length'] ?? 'none' });
        response.end();
      });
    });
    const sides = await inbound(app);
    const call = httpRequest({ host: '127.0.0.1', port: sides.inbound, method: 'POST', agent: false });
    atEnd(() => call.destroy());
    call.setHeader('Trailer', 'X-Length');
    call.write('ping');
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      call.on('response', resolve);
      call.on('error', reject);
    });
    const first = await new Promise<Buffer>((resolve) => response.once('data', resolve));
    expect(first.toString()).toBe('ping');
    // The answer has begun while the request goes on.
    const rest = new Promise<string>((resolve) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => resolve(text));
    });
    call.write('x'.repeat(1_000_000));
    call.addTrailers({ 'X-Length': '1000004' });
    call.end();
    expect((await rest).length).toBe(1_000_000);
    expect(response.trailers).toEqual({ 'x-sum': '1000004' });
  });

  it('passes interim answers on: hints, and "continue" when the service says so and not before', async () => {
    const app = await bytes((text, socket) => {
      if (text.startsWith('POST')) {
        expect(text.toLowerCase()).toContain('expect: 100-continue');
        socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n');
        setTimeout(() => socket.write('HTTP/1.1 100 Continue\r\n\r\n'), 30);
      } else {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
      }
    });
    const sides = await inbound(app);
    const call = httpRequest({
      ...{ host: '127.0.0.1', port: sides.inbound, method: 'POST', agent: false },
      headers: { Expect: '100-continue', 'Content-Length': '4' },
    });
    atEnd(() => call.destroy());
    const heard: unknown[] = [];
    call.on('information', (info) =>
      heard.push(info.statusCode === 103 ? info.headers['link'] : info.statusCode),
    );
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      call.on('continue', () => call.end('body'));
      call.on('response', resolve);
      call.on('error', reject);
    });
    let body = '';
    for await (const chunk of response) body += String(chunk);
    expect([heard, body]).toEqual([['</a.css>; rel=preload', 100], 'body']);
  });

  it('lets the service refuse a body that the caller has not sent yet, and closes that connection', async () => {
    const app = await bytes((_text, socket) =>
      socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n'),
    );
    const sides = await inbound(app);
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\nExpect: 100-continue\r\n\r\n';
    const answer = await raw(sides.inbound, head);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toMatch(/connection: close/i);
  });

  it('says which service it cannot reach, and of one that breaks off what became of the call', async () => {
    const nowhere = await inbound(`http://127.0.0.1:${await freePort()}`);
    const refused = await send(nowhere.inbound, '/');
    expect([refused.status, refused.headers['content-type']]).toEqual([503, 'application/problem+json']);
    expect(JSON.parse(refused.body)).toMatchObject({
      status: 503,
      service: 'storefront',
      type: 'urn:bulwark:problem:service-unreachable',
      detail: expect.stringMatching(/storefront at 127\.0\.0\.1:\d+: ECONNREFUSED/) as string,
    });
    const breaking = await inbound(await bytes((_text, socket) => socket.resetAndDestroy()));
    const broken = await send(breaking.inbound, '/');
    expect([broken.status, JSON.parse(broken.body)]).toMatchObject([502, { reason: 'broke-off' }]);
    const half = await inbound(
      await bytes((_text, socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')),
    );
    await expect(send(half.inbound, '/')).rejects.toThrow();
    const metrics = await admin(nowhere.admin, '/metrics');
    expect(metrics.body).toContain('bulwark_inbound_call_duration_seconds_count{outcome="unreachable"} 1');
  });

  it('ends the service’s request when the caller goes away', async () => {
    let closed = 0;
    const app = await upstream((_request, response) => void response.once('close', () => (closed += 1)));
    const sides = await inbound(app);
    const gone = new AbortController();
    const call = send(sides.inbound, '/slow', { signal: gone.signal }).catch(() => 'gone');
    await eventually(async () =>
      (await admin(sides.admin, '/metrics')).body.includes('bulwark_inbound_in_flight 1'),
    );
    gone.abort();
    expect(await call).toBe('gone');
    await eventually(() => closed === 1);
    await eventually(async () =>
      (await admin(sides.admin, '/metrics')).body.includes(
        'bulwark_inbound_call_duration_seconds_count{outcome="cancelled"} 1',
      ),
    );
  });

  it('lets no caller name the length of its body as a header of the connection, to hide a second request in it', async () => {
    const seen: string[] = [];
    const app = await upstream((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        seen.push(`${request.method} ${request.url} ${body}`);
        response.end();
      });
    });
    const sides = await inbound(app, [], { app });
    const hidden = 'GET /hidden HTTP/1.1\r\nHost: a\r\nBulwark-Attempt: 9\r\n\r\n';
    for (const [port, url] of [
      [sides.inbound, '/open'],
      [sides.listen, 'http://app/open'],
    ] as const) {
      const request = `POST ${url} HTTP/1.1\r\nHost: app\r\nConnection: close, content-length\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`;
      expect(await raw(port, request)).toMatch(/^HTTP\/1\.1 200 /);
      await send(sides.inbound, '/after');
    }
    const all = [`POST /open ${hidden}`, 'GET /after '];
    expect(seen).toEqual([...all, ...all]);
  });

  it('refuses with a problem what it cannot read, would have to guess at, or sees a second time', async () => {
    let calls = 0;
    const app = await upstream((_request, response) => {
      calls += 1;
      response.end('ok');
    });
    const sides = await inbound(app);
    const first = await send(sides.inbound, '/');
    const close = 'Connection: close\r\n';
    const refused: [status: number, request: string, says: string][] = [
      [508, `GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 x, ${first.headers.via}\r\n${close}\r\n`, 'came back'],
      [400, `GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n${close}\r\n`, 'this one has 2'],
      [400, `GET / HTTP/1.1\r\n${close}\r\n`, 'this one has 0'],
      [400, `GET ftp://a/ HTTP/1.1\r\nHost: a\r\n${close}\r\n`, 'neither a path nor'],
      [501, `GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, 'upgrade'],
      [501, `CONNECT b:443 HTTP/1.1\r\nHost: b\r\n\r\n`, 'no proxy for other places'],
      [
        501,
        `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n${close}\r\n0\r\n\r\n`,
        'gzip, chunked',
      ],
      [400, 'GET / HTTP/1.1\r\nHost: a\r\nBad Header\r\n\r\n', 'cannot be read'],
    ];
    for (const [status, request, says] of refused) {
      const answer = await raw(sides.inbound, request);
      expect(answer, says).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(answer).toContain(says);
    }
    expect(calls).toBe(1);
    for (const request of [`GET http://b/x HTTP/1.1\r\nHost: a\r\n${close}\r\n`, 'GET /x HTTP/1.0\r\n\r\n']) {
      expect(await raw(sides.inbound, request)).toMatch(/^HTTP\/1\.1 200 /);
    }
  });
});
