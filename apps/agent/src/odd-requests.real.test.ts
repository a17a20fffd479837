import { eventually } from '@bulwark/testing';
import fc from 'fast-check';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { admin, atEnd, cleanUp, inbound } from './sidecar-fixture.js';

afterEach(cleanUp);

const METHODS = ['GET', 'GET', 'POST', 'POST', 'HEAD', 'OPTIONS', 'PUT', 'TRACE', 'CONNECT', 'FOO'];
const TARGETS = [
  ...['/', '/', '/x?y', '*', '//', '/a b', '/%zz', '/../..', '/\x80', 'x', 'http://app', 'http://app/#f'],
  ...['http:///x', 'http://[::1/', 'http://app:99999/', 'http://u@app/', 'http://a\\b/', 'https://app/'],
];
const FIELDS = [
  ...['Host: app', 'Host:', 'Host: a/b', 'Content-Length: 5', 'Content-Length: 0', 'Content-Length: 5, 5'],
  ...['Transfer-Encoding: chunked', 'Transfer-Encoding: gzip', 'Connection: close', 'Expect: 100-continue'],
  ...['Content-Length: 5\r\nConnection: content-length', 'Content-Length: 5\r\nConnection: content-length'],
  ...['Connection: content-length, host', 'Connection: transfer-encoding', 'Connection: bulwark-deadline'],
  ...['Bulwark-Deadline: 0', 'Bulwark-Deadline: 30', 'Bulwark-Deadline: junk', 'Bulwark-Attempt: 99999'],
  ...['traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'traceparent: junk'],
  ...[
    'Upgrade: h2c',
    'Connection: upgrade',
    'Upgrade: websocket',
    'Trailer: X',
    'X: \x80\xff',
    'Via: 1.1 me',
  ],
];
const BODIES = [
  '',
  '',
  'hello',
  'hello',
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  '5\r\nhello\r\n0\r\nX: 1\r\n\r\n',
  'zz\r\n',
];

const request = fc
  .record({
    method: fc.constantFrom(...METHODS),
    target: fc.constantFrom(...TARGETS),
    version: fc.constantFrom('1.1', '1.1', '1.1', '1.0', '2.0'),
    fields: fc.array(fc.constantFrom(...FIELDS), { maxLength: 4 }),
    body: fc.constantFrom(
      ...BODIES,
      'GET / HTTP/1.1\r\nHost: app\r\n\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    ),
  })
  .map(({ method, target, version, fields, body }) =>
    [`${method} ${target} HTTP/${version}`, 'Host: app', ...fields, '', body].join('\r\n'),
  );

/** Sends these bytes, waits until something or nothing comes back, and hangs up. */
function hangUpOn(port: number, text: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text, 'latin1'));
    const timer = setTimeout(() => socket.destroy(), 60);
    socket.on('data', () => setTimeout(() => socket.destroy(), 5));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

it('whatever is sent to either side, every call that was taken on ends, and the service can read all it gets', async () => {
  const unreadable: string[] = [];
  const app = createServer((incoming, response) => {
    incoming.resume().on('error', () => undefined);
    incoming.on('end', () => response.end('ok'));
  });
  // A request that is cut off is no fault of its proxy's; one that the service cannot parse is.
  app.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const cut = ['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE'].includes(error.code ?? '');
    if (!cut) unreadable.push(`${error.code}: ${error.message}`);
    socket.destroy();
  });
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    app.closeAllConnections();
    app.close();
  });
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
  const sides = await inbound(url, [], { app: url });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(request, { minLength: 1, maxLength: 2 }), { minLength: 20, maxLength: 20 }),
      async (all) => {
        const ports = [sides.inbound, sides.listen];
        await Promise.all(all.map((pipelined, at) => hangUpOn(ports[at % 2] ?? 0, pipelined.join(''))));
        expect(unreadable).toEqual([]);
      },
    ),
    { numRuns: 30, endOnFailure: true },
  );
  const state = async () => {
    const { body } = await admin(sides.admin, '/state');
    return (JSON.parse(body) as { sidecar: Record<string, Record<string, number>> }).sidecar;
  };
  await eventually(async () => {
    const { outbound, inbound: own, join } = await state();
    return outbound?.['unfinished'] === 0 && own?.['unfinished'] === 0 && join?.['callsInFlight'] === 0;
  });
  const { outbound, inbound: own } = await state();
  expect(outbound?.['accepted']).toBeGreaterThan(50);
  expect(own?.['accepted']).toBeGreaterThan(50);
});
