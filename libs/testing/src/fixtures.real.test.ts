import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { eventually, startEtcd, startProcess, startTcpProxy } from './index.js';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const each of cleanups.splice(0).reverse()) await each();
});
function cleaned<T extends AsyncDisposable>(resource: T): T {
  cleanups.push(async () => resource[Symbol.asyncDispose]());
  return resource;
}

const node = (script: string) => ({ command: process.execPath, args: ['-e', script] });

describe('a process', () => {
  test('is awaited until its ready line, and its output is kept', async () => {
    const child = cleaned(
      await startProcess({
        ...node("console.log('ready 42'); setInterval(() => {}, 1000)"),
        readyLine: /ready \d+/,
      }),
    );
    expect(child.stdout()).toBe('ready 42\n');
    expect(await child.stop()).toEqual({ code: null, signal: 'SIGTERM' });
  });

  test('that ends before its ready line fails the start with what it wrote', async () => {
    const start = startProcess({ ...node("console.error('no luck'); process.exit(3)"), readyLine: 'ready' });
    await expect(start).rejects.toThrow(/code 3[^]*no luck/);
  });

  test('that does not exist fails the start with its name', async () => {
    await expect(startProcess({ command: 'no-such-program' })).rejects.toThrow(/no-such-program/);
  });

  test('stands still between pause and resume', async () => {
    const child = cleaned(
      await startProcess({ ...node("process.stdin.on('data', (d) => process.stdout.write('got ' + d))") }),
    );
    child.write('1\n');
    await child.waitForLine('got 1');
    child.pause();
    child.write('2\n');
    await expect(child.waitForLine('got 2', { withinMs: 200 })).rejects.toThrow(/200 ms/);
    child.resume();
    await child.waitForLine('got 2');
  });
});

describe('the TCP proxy', () => {
  async function echo(): Promise<{ proxy: Awaited<ReturnType<typeof startTcpProxy>>; dial: () => Socket }> {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.pipe(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(async () => {
      for (const each of sockets) each.destroy();
      await new Promise((resolve) => server.close(resolve));
    });
    const { port } = server.address() as AddressInfo;
    const proxy = cleaned(await startTcpProxy({ target: `127.0.0.1:${port}` }));
    const dial = () => {
      const socket = connect(proxy.port, '127.0.0.1');
      socket.on('error', () => undefined);
      cleanups.push(() => Promise.resolve(socket.destroy()));
      return socket;
    };
    return { proxy, dial };
  }

  function received(socket: Socket): () => string {
    let text = '';
    socket.on('data', (data: Buffer) => (text += data.toString()));
    return () => text;
  }

  test('carries bytes, holds them while paused, and lets them go in order', async () => {
    const { proxy, dial } = await echo();
    const socket = dial();
    const got = received(socket);
    socket.write('a');
    await eventually(() => got() === 'a');
    proxy.pause();
    socket.write('b');
    socket.write('c');
    await expect(eventually(() => got() !== 'a', { withinMs: 150 })).rejects.toThrow();
    proxy.resume();
    await eventually(() => got() === 'abc');
  });

  test('cuts what stands and refuses new connections until resumed', async () => {
    const { proxy, dial } = await echo();
    const socket = dial();
    const got = received(socket);
    socket.write('a');
    await eventually(() => got() === 'a');
    expect(proxy.connections()).toBe(1);
    proxy.cut();
    await eventually(() => socket.destroyed);
    const refused = dial();
    await eventually(() => refused.destroyed);
    proxy.resume();
    const again = dial();
    const gotAgain = received(again);
    again.write('x');
    await eventually(() => gotAgain() === 'x');
  });

  test('slows each direction by the given time', async () => {
    const { proxy, dial } = await echo();
    proxy.slow(60);
    const socket = dial();
    const got = received(socket);
    const started = performance.now();
    socket.write('a');
    await eventually(() => got() === 'a', { everyMs: 2 });
    expect(performance.now() - started).toBeGreaterThan(115);
  });
});

describe('etcd', () => {
  test('serves, survives a kill on the same endpoint, and stops', async () => {
    const etcd = cleaned(await startEtcd());
    const health = async () => (await fetch(`${etcd.endpoint}/health`)).text();
    expect(await health()).toContain('true');
    await etcd.kill();
    await expect(health()).rejects.toThrow();
    await etcd.start();
    expect(await health()).toContain('true');
  });
});

test('eventually answers the value of the first check that holds, and names what it waited for', async () => {
  let calls = 0;
  expect(await eventually(() => (++calls < 3 ? false : calls))).toBe(3);
  await expect(eventually(() => false, { withinMs: 30, what: 'rain' })).rejects.toThrow(
    'Waited 30 ms for rain',
  );
});
