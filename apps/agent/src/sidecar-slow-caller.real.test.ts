import { eventually } from '@bulwark/testing';
import { request as httpRequest } from 'node:http';
import { connect as tcpConnect, createServer as createTcpServer, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { admin, atEnd, cleanUp, fraudSpec, sidecar, upstream, via } from './sidecar-fixture.js';

afterEach(cleanUp);

interface StateText {
  readonly policies: readonly {
    readonly breakers: readonly { readonly state: string }[];
    readonly totals?: { readonly timeouts: number; readonly cancelled: number; readonly failed: number };
  }[];
}

const policyState = async (port: number) =>
  (JSON.parse((await admin(port, '/state')).body) as StateText).policies[0];

const spec = { ...fraudSpec, retry: { maxAttempts: 3, backoff: { base: '1ms', max: '2ms' } } };
const BIG = Buffer.alloc(16 * 1024 * 1024, 'x');

/** A caller that reads its answer only when it is told to; answers how its connection ended and how much came. */
function lazyCaller(port: number, head: string) {
  const socket = tcpConnect(port, '127.0.0.1');
  atEnd(() => socket.destroy());
  socket.write(head);
  socket.pause();
  return {
    read: () =>
      new Promise<{ bytes: number; error: string | undefined }>((resolve) => {
        let bytes = 0;
        let error: string | undefined;
        socket.on('data', (chunk: Buffer) => (bytes += chunk.length));
        socket.on('error', (cause: NodeJS.ErrnoException) => (error = cause.code));
        socket.on('close', () => resolve({ bytes, error }));
        socket.resume();
      }),
  };
}

describe('a caller that is slow itself', () => {
  it('opens no breaker by answers it does not read, and its answer is cut', async () => {
    const url = await upstream((request, response) => response.end(request.url === '/big' ? BIG : 'ok'));
    // Enough for this one process, which is all three sides, to fill every buffer between them.
    const patient = { ...spec, timeout: { attempt: '4s', total: '9s' } };
    const running = await sidecar([patient], { 'fraud-api': url });
    const callers = Array.from({ length: 12 }, (_, index) =>
      lazyCaller(
        running.listen,
        // Half of them read until the end of the connection, as HTTP/1.0 does.
        `GET http://fraud-api/big HTTP/1.${index % 2}\r\nHost: fraud-api\r\n\r\n`,
      ),
    );
    await eventually(async () => (await policyState(running.admin))?.totals?.timeouts === 12, {
      withinMs: 20_000,
    });
    expect(await policyState(running.admin)).toMatchObject({
      breakers: [{ state: 'closed' }],
      totals: { attempts: 12, cancelled: 12, failed: 0 },
    });
    expect((await via(running.listen, 'http://fraud-api/x')).body).toBe('ok');
    for (const end of await Promise.all(callers.map((caller) => caller.read()))) {
      expect(end.bytes).toBeLessThan(BIG.length);
      expect(end.error).toBe('ECONNRESET');
    }
  });

  it('opens no breaker by a body it does not send, and hears that it was too slow', async () => {
    const url = await upstream((request, response) => {
      request.resume();
      request.on('end', () => response.end('ok'));
    });
    const running = await sidecar([spec], { 'fraud-api': url });
    for (let count = 0; count < 4; count += 1) {
      const status = await new Promise<number>((resolve, reject) => {
        const call = httpRequest(
          {
            host: '127.0.0.1',
            port: running.listen,
            path: 'http://fraud-api/put',
            method: 'PUT',
            headers: { host: 'fraud-api', 'transfer-encoding': 'chunked' },
            agent: false,
          },
          (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          },
        );
        atEnd(() => call.destroy());
        call.on('error', reject);
        call.write('the first part');
      });
      expect(status).toBe(408);
    }
    expect(await policyState(running.admin)).toMatchObject({
      breakers: [{ state: 'closed' }],
      totals: { cancelled: 4, failed: 0 },
    });
  });
});

describe('a dependency that is slow itself', () => {
  it('opens its breaker by answers that stall half way, though the caller takes all there is', async () => {
    const url = await upstream((_request, response) => {
      response.writeHead(200, { 'Content-Length': 2_000_000 });
      response.write(Buffer.alloc(1_000_000));
    });
    const running = await sidecar([spec], { 'fraud-api': url });
    for (let count = 0; count < 3; count += 1) {
      await expect(via(running.listen, 'http://fraud-api/x')).rejects.toThrow();
    }
    expect(await policyState(running.admin)).toMatchObject({ breakers: [{ state: 'open' }] });
  });

  it('opens its breaker by a large body that it does not read', async () => {
    const sockets = new Set<{ destroy: () => void }>();
    const server = createTcpServer({ pauseOnConnect: true }, (socket) => sockets.add(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    });
    const { port } = server.address() as AddressInfo;
    // Enough for this one process, which is all three sides, to fill every buffer between them: then it is the
    // dependency alone that is waited for.
    const patient = { ...spec, timeout: { attempt: '1500ms', total: '4s' } };
    const running = await sidecar([patient], { 'fraud-api': `http://127.0.0.1:${port}` });
    const body = BIG.toString('latin1');
    for (let count = 0; count < 3; count += 1) {
      const reply = await via(running.listen, 'http://fraud-api/put', { method: 'PUT', body });
      expect(reply.status).toBe(504);
    }
    expect(await policyState(running.admin)).toMatchObject({ breakers: [{ state: 'open' }] });
  });
});
