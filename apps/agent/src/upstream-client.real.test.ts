import { eventually } from '@bulwark/testing';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { atEnd, cleanUp } from './sidecar-fixture.js';
import { UpstreamClient } from './upstream-client.js';
import type { AnswerListener, Exchange, Upload, UpstreamBody, UpstreamCall } from './upstream/exchange.js';

afterEach(cleanUp);

interface Request {
  readonly socket: Socket;
  /** The number of its connection, from 1, and of the request on it. */
  readonly connection: number;
  readonly turn: number;
}

/** An upstream that answers every head it reads as it is told; answers its port and how many connections it had. */
async function rawUpstream(answer: (request: Request) => void) {
  const seen = { connections: 0, open: new Set<Socket>(), bytes: 0 };
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    seen.connections += 1;
    seen.open.add(socket);
    const connection = seen.connections;
    let turn = 0;
    let text = '';
    socket.on('error', () => undefined);
    socket.on('close', () => seen.open.delete(socket));
    socket.on('end', () => socket.end());
    socket.on('data', (chunk: Buffer) => {
      seen.bytes += chunk.length;
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        text = text.slice(end + 4);
        turn += 1;
        answer({ socket, connection, turn });
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    for (const socket of seen.open) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

function newClient(): UpstreamClient {
  const client = new UpstreamClient();
  atEnd(() => client.close());
  return client;
}

interface End {
  readonly status: number | undefined;
  readonly body: string;
  readonly error: unknown;
}

const NOTHING: UpstreamBody = { kind: 'whole', bytes: Buffer.alloc(0) };

/** What a call came to, and its exchange. */
function start(
  client: UpstreamClient,
  port: number,
  more: Partial<UpstreamCall> = {},
  on: Partial<AnswerListener> = {},
) {
  const call: UpstreamCall = {
    origin: { secure: false, host: '127.0.0.1', port },
    toHead: false,
    head: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
    body: NOTHING,
    signal: new AbortController().signal,
    repeatable: true,
    ...more,
  };
  let exchange: Exchange | undefined;
  const end = new Promise<End>((resolve) => {
    let status: number | undefined;
    const body: Buffer[] = [];
    const finish = (error: unknown): void => resolve({ status, body: Buffer.concat(body).toString(), error });
    exchange = client.open(call, {
      head: (head, at) => {
        status = head.status;
        on.head?.(head, at);
      },
      data: (chunk) => {
        body.push(chunk);
        on.data?.(chunk);
      },
      waiting: () => on.waiting?.(),
      end: () => finish(undefined),
      failed: finish,
    });
  });
  return { end, exchange: exchange as Exchange };
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('connections to upstreams', () => {
  it('are kept between calls, one call at a time on each', async () => {
    const { port, seen } = await rawUpstream(({ socket }) => setTimeout(() => socket.write(OK), 5));
    const client = newClient();
    for (let round = 0; round < 5; round += 1) {
      const ends = await Promise.all([1, 2, 3].map(() => start(client, port).end));
      expect(ends.map(({ body }) => body)).toEqual(['ok', 'ok', 'ok']);
    }
    expect(seen.connections).toBe(3);
  });

  it.each([
    ['more follows an answer', `${OK}HTTP/1.1 200 OK\r\n`],
    [
      'the upstream says that it closes',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok',
    ],
    ['the answer is of HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    [
      'its upstream keeps it for a second only',
      'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok',
    ],
  ])('are not kept when %s', async (_when, answer) => {
    const { port, seen } = await rawUpstream(({ socket }) => socket.write(answer));
    const client = newClient();
    for (let call = 1; call <= 3; call += 1) {
      expect((await start(client, port).end).body).toBe('ok');
      expect(seen.connections).toBe(call);
    }
    await eventually(() => seen.open.size === 0);
  });

  it('end when their upstream says something that nobody asked for', async () => {
    const { port, seen } = await rawUpstream(({ socket }) => {
      socket.write(OK);
      setTimeout(() => socket.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n'), 10);
    });
    const client = newClient();
    expect((await start(client, port).end).body).toBe('ok');
    await eventually(() => seen.open.size === 0);
    expect(await start(client, port).end).toMatchObject({ status: 200, body: 'ok' });
  });

  it('carry what may be repeated anew when they were closed before any answer, once, on a new one', async () => {
    const { port, seen } = await rawUpstream(({ socket, turn }) => {
      if (turn === 1) socket.write(OK);
      else socket.resetAndDestroy();
    });
    const client = newClient();
    await Promise.all([start(client, port).end, start(client, port).end]);
    expect(await start(client, port).end).toMatchObject({ status: 200, body: 'ok' });
    expect(seen.connections).toBe(3);
    // What may not be repeated fails on a connection that is closed under it.
    const end = await start(client, port, { repeatable: false }).end;
    expect(end).toMatchObject({ status: undefined, error: { code: 'ECONNRESET' } });
  });

  it('repeat nothing once a byte of the answer has come', async () => {
    let requests = 0;
    const { port } = await rawUpstream(({ socket, turn }) => {
      requests += 1;
      if (turn === 1) socket.write(OK);
      else socket.write('H', () => socket.resetAndDestroy());
    });
    const client = newClient();
    await start(client, port).end;
    expect((await start(client, port).end).error).toMatchObject({ code: 'ECONNRESET' });
    expect(requests).toBe(2);
  });
});

describe('an answer of an upstream', () => {
  it('ends with its connection when nothing else says where, also half-closed', async () => {
    const { port, seen } = await rawUpstream(({ socket }) => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it'));
    const client = newClient();
    expect(await start(client, port).end).toEqual({ status: 200, body: 'all of it', error: undefined });
    await eventually(() => seen.open.size === 0);
  });

  it.each([
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
    ['nothing but a head begun', 'HTTP/1.1 200'],
  ])('that has %s and breaks off is an error', async (_what, answer) => {
    const { port } = await rawUpstream(({ socket }) => socket.end(answer));
    expect((await start(newClient(), port).end).error).toMatchObject({ code: 'ECONNRESET' });
  });

  it('that breaks the grammar is refused, and its connection ended', async () => {
    const { port, seen } = await rawUpstream(({ socket }) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk'),
    );
    expect((await start(newClient(), port).end).error).toMatchObject({ code: 'BAD_ANSWER' });
    await eventually(() => seen.open.size === 0);
  });

  it.each([
    ['has lines that end with LF', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
    ['is of another protocol', 'SSH-2.0-x\r\n'],
    ['has a malformed status line', 'HTTP/1.1 fine\r\n'],
  ])('that %s is refused at once, whether its connection stays open or not', async (_what, answer) => {
    for (const stays of [true, false]) {
      const { port, seen } = await rawUpstream(({ socket }) =>
        stays ? socket.write(answer) : socket.end(answer),
      );
      expect((await start(newClient(), port).end).error).toMatchObject({ code: 'BAD_ANSWER' });
      await eventually(() => seen.open.size === 0);
    }
  });

  it('is held back while nobody takes it, and comes whole after that', async () => {
    const large = 24 * 1024 * 1024;
    let written = 0;
    const { port } = await rawUpstream(({ socket }) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${large}\r\n\r\n`);
      const more = (): void => {
        while (written < large) {
          written += 65_536;
          if (!socket.write(Buffer.alloc(65_536, 'x'))) return void socket.once('drain', more);
        }
      };
      more();
    });
    let told = 0;
    const call = start(
      newClient(),
      port,
      {},
      {
        data: (chunk) => {
          if (told === 0) call.exchange.pause();
          told += chunk.length;
        },
      },
    );
    await eventually(() => told > 0 && written > 1_000_000);
    // What the buffers between them hold has come, and no more.
    let before = -1;
    await eventually(() => before === (before = written), { everyMs: 100 });
    expect(told).toBeLessThan(200_000);
    expect(written).toBeLessThan(large);
    call.exchange.resume();
    expect((await call.end).body.length).toBe(large);
  });

  it('is no answer any more once its call is aborted, whenever that is', async () => {
    const parts = ['HTTP/1.1 200 OK\r\n', 'Content-Length: 4\r\n\r\n', 'ha', 'lf'];
    for (let until = 0; until < parts.length; until += 1) {
      const gone = new AbortController();
      const reason = new Error('enough');
      const { port, seen } = await rawUpstream(({ socket }) => {
        for (const part of parts.slice(0, until)) socket.write(part);
        setTimeout(() => gone.abort(reason), 10);
      });
      const { end } = start(newClient(), port, { signal: gone.signal });
      expect((await end).error).toBe(reason);
      await eventually(() => seen.open.size === 0);
    }
    const { port } = await rawUpstream(() => undefined);
    const before = start(newClient(), port, { signal: AbortSignal.abort(new Error('before')) });
    await expect(before.end).rejects.toThrow('before');
  });

  it('that its reader fails on ends its call with that error', async () => {
    const { port, seen } = await rawUpstream(({ socket }) => socket.write(OK));
    const head = (): void => {
      throw new TypeError('cannot be written');
    };
    expect((await start(newClient(), port, {}, { head }).end).error).toBeInstanceOf(TypeError);
    await eventually(() => seen.open.size === 0);
  });
});

describe('a body that goes to an upstream', () => {
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';

  function upload(drained: () => void = () => undefined) {
    const told: string[] = [];
    let to: Upload | undefined;
    const body: UpstreamBody = {
      kind: 'stream',
      chunked: true,
      start: (upload) => {
        to = upload;
        return {
          ready: () => void told.push('ready'),
          drained,
          over: () => void told.push('over'),
        };
      },
    };
    return { told, body, to: () => to as Upload };
  }

  it('may be answered before it was sent; the rest is not wanted, and the connection not kept', async () => {
    const { port, seen } = await rawUpstream(({ socket, turn }) => {
      if (turn === 1) socket.write('HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno');
    });
    const { told, body, to } = upload();
    const call = start(newClient(), port, { head, body, repeatable: false });
    to().write(Buffer.from('the beginning'));
    expect(await call.end).toEqual({ status: 413, body: 'no', error: undefined });
    expect(told).toEqual(['ready', 'over']);
    expect(to().write(Buffer.from('more'))).toBe(true);
    to().end();
    await eventually(() => seen.open.size === 0);
  });

  it('waits for an upstream that takes nothing', async () => {
    const { port } = await rawUpstream(({ socket }) => socket.pause());
    let sent = 0;
    const fill = (): void => {
      do sent += 65_536;
      while (to().write(Buffer.alloc(65_536)));
    };
    const { told, body, to } = upload(fill);
    const gone = new AbortController();
    const call = start(newClient(), port, { head, body, signal: gone.signal, repeatable: false });
    await eventually(() => told.includes('ready'));
    fill();
    // What the buffers between them hold has gone, and no more.
    let before = -1;
    await eventually(() => before === (before = sent), { everyMs: 200 });
    expect(sent).toBeLessThan(24 * 1024 * 1024);
    gone.abort(new Error('enough'));
    expect((await call.end).error).toMatchObject({ message: 'enough' });
    expect(told.at(-1)).toBe('over');
  });
});
