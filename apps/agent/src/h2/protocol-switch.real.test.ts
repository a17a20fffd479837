import { createServer as createHttp1 } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2 } from 'node:http2';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { atEnd, cleanUp } from '../sidecar-fixture.js';
import { ProtocolSwitch } from './protocol-switch.js';

afterEach(cleanUp);

const DETECT_WITHIN_MS = 300;

async function door(): Promise<number> {
  const http1 = createHttp1(
    { headersTimeout: 500, connectionsCheckingInterval: 100 },
    (request, response) => {
      let bytes = 0;
      request.on('data', (chunk: Buffer) => (bytes += chunk.length));
      request.on('end', () => response.end(`http1 ${bytes}`));
    },
  );
  const server = createHttp2();
  server.on('stream', (stream) => {
    stream.respond({ ':status': 200 });
    stream.end('http2');
  });
  const made = new ProtocolSwitch({ http1, grpc: { server }, detectWithinMs: DETECT_WITHIN_MS });
  await new Promise<void>((resolve) => made.server.listen(0, '127.0.0.1', resolve));
  atEnd(async () => {
    const closed = made.close();
    http1.closeAllConnections();
    http1.close();
    await closed;
  });
  return (made.server.address() as AddressInfo).port;
}

function dial(port: number): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  socket.on('error', () => undefined);
  atEnd(() => socket.destroy());
  return socket;
}

const text = (socket: Socket) =>
  new Promise<string>((resolve) => {
    let all = '';
    socket.on('data', (chunk: Buffer) => (all += chunk.toString('latin1')));
    socket.on('close', () => resolve(all));
  });

const closedAfter = (socket: Socket) => {
  const began = performance.now();
  socket.resume();
  return new Promise<number>((resolve) => socket.once('close', () => resolve(performance.now() - began)));
};

async function dripped(socket: Socket, bytes: string): Promise<void> {
  for (const byte of bytes) {
    socket.write(byte, 'latin1');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

describe('one port for HTTP/1.1 and cleartext HTTP/2', () => {
  it('hands each connection to the server that speaks its protocol', async () => {
    const port = await door();
    const posted = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x'.repeat(300_000) });
    expect(await posted.text()).toBe('http1 300000');
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    atEnd(() => session.destroy());
    let body = '';
    for await (const chunk of session.request({ ':path': '/' })) body += String(chunk);
    expect(body).toBe('http2');
  });

  it('finds the protocol though the first bytes drip', async () => {
    const port = await door();
    const one = dial(port);
    const answer = text(one);
    await dripped(one, 'PROPFIND / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(await answer).toMatch(/^HTTP\/1\.1 200 OK[^]*http1 0/);
    const two = dial(port);
    const first = new Promise<Buffer>((resolve) => two.once('data', resolve));
    await dripped(two, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0');
    // A SETTINGS frame.
    expect((await first)[3]).toBe(4);
  });

  it('closes connections that say half a preface or nothing, in time', async () => {
    const port = await door();
    const half = dial(port);
    half.write('PRI * HTTP/2.0\r\n\r\nSM');
    const times = await Promise.all([closedAfter(half), closedAfter(dial(port))]);
    for (const time of times) {
      expect(time).toBeGreaterThan(DETECT_WITHIN_MS - 20);
      expect(time).toBeLessThan(DETECT_WITHIN_MS + 2_000);
    }
  });

  it('keeps the timeouts of the HTTP/1.1 server', async () => {
    const slow = dial(await door());
    slow.write('GET / HTTP/1.1\r\nHost: ');
    expect(await text(slow)).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('serves a caller that closes its side after the request', async () => {
    const socket = dial(await door());
    const answer = text(socket);
    socket.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(await answer).toContain('http1 0');
  });

  it('lets a connection go that closes before it says anything', async () => {
    const socket = dial(await door());
    socket.end();
    expect(await closedAfter(socket)).toBeLessThan(DETECT_WITHIN_MS);
  });
});
