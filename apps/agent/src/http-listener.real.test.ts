import { eventually } from '@bulwark/testing';
import { connect, type AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { AcceptedWork } from './accepted-work.js';
import { HttpListener, type IncomingCall, type ListenerOptions } from './http-listener.js';
import { atEnd, cleanUp } from './sidecar-fixture.js';

afterEach(cleanUp);

/** A listener whose calls are answered by the test, and the text of pipelined requests to it. */
async function listener(answer: (call: IncomingCall) => void, more: Partial<ListenerOptions> = {}) {
  const work = new AcceptedWork();
  work.begin();
  const listening = new HttpListener({
    ...{ work, trusts: () => true, answer, refusalMarks: () => ({}), noTunnel: () => '' },
    ...more,
  });
  await new Promise<void>((resolve) => listening.server.listen(0, '127.0.0.1', resolve));
  atEnd(() => listening.close());
  const socket = connect((listening.server.address() as AddressInfo).port, '127.0.0.1');
  atEnd(() => socket.destroy());
  socket.on('error', () => undefined).resume();
  const pipeline = (...paths: string[]) =>
    socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
  return { work, socket, pipeline };
}

it('S10: every pipelined call ends with its connection, also those whose turn to be answered never came', async () => {
  const closed: string[] = [];
  const { work, socket, pipeline } = await listener(({ request, response }) =>
    response.once('close', () => closed.push(request.url ?? '')),
  );
  pipeline('/1', '/2', '/3');
  await eventually(() => work.inFlight === 3);
  socket.destroy();
  await eventually(() => work.inFlight === 0);
  expect(closed.toSorted()).toEqual(['/1', '/2', '/3']);
  expect(work.counts()).toEqual({ accepted: 3, completed: 3, refused: 0, unfinished: 0 });
});

it('S10: every pipelined call ends where the answer before it closes the connection', async () => {
  const { work, pipeline } = await listener(({ request, response }) => {
    if (request.url === '/1') response.writeHead(200, { Connection: 'close' });
    if (request.url !== '/3') response.end();
  });
  pipeline('/1', '/2', '/3');
  await eventually(() => work.counts().accepted === 3 && work.inFlight === 0);
});

it('a head that does not come to its end is answered 408 soon after its time', async () => {
  const { work, socket } = await listener(() => undefined, { headWithinMs: 300 });
  let heard = '';
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
  const beganMs = performance.now();
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n');
  await eventually(() => socket.destroyed);
  expect(heard).toContain('HTTP/1.1 408 ');
  // Node alone would have looked after 30 s.
  expect(performance.now() - beganMs).toBeLessThan(4_000);
  expect(work.counts().accepted).toBe(0);
});

it.each([
  [
    'an expectation of its own',
    'Expect: moon',
    417,
    'one expectation, \\"Expect: 100-continue\\", and not \\"moon\\"',
  ],
  ['more than a head may', `A: ${'x'.repeat(33_000)}`, 431, 'is larger than 32 KiB, the most that is taken'],
])('a request that says %s is refused with the limit', async (_what, field, status, sentence) => {
  const { work, socket } = await listener(() => undefined);
  let heard = '';
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
  socket.write(`GET / HTTP/1.1\r\nHost: a\r\n${field}\r\n\r\n`);
  await eventually(() => socket.destroyed);
  expect(heard).toContain(`HTTP/1.1 ${status} `);
  expect(heard).toContain(sentence);
  expect(work.counts().accepted).toBe(0);
});
