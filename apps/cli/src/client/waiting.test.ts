import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runCli, startCli } from '../testing/run-cli.js';

describe('a server that does not answer', () => {
  let server: Server;
  let url: string;
  let asked: Promise<unknown>;

  beforeEach(async () => {
    server = createServer();
    asked = new Promise((resolve) => server.once('request', resolve));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(async () => {
    vi.useRealTimers();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('is given up after --request-timeout', async () => {
    const { code, stderr } = await runCli(['get', 'br', '--server', url, '--request-timeout', '50ms']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: the server \S+ could not be reached: it did not answer within 0\.05 s\n/);
  });

  it('is told of after 3 s, once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const command = startCli(['get', 'br', '--server', url]);
    await asked;
    vi.advanceTimersByTime(2_999);
    expect(command.stderr()).toBe('');
    vi.advanceTimersByTime(60_000);
    expect(command.stderr()).toBe(`still waiting for ${url} …\n`);
    command.interrupt();
    expect((await command.ended).code).toBe(130);
  });

  it.each(['0', '0s', '-1s', 'soon', '25h'])('is not waited for %j', async (time) => {
    const { code, stderr } = await runCli(['get', 'br', '--server', url, `--request-timeout=${time}`]);
    expect([code, stderr.split('\n')[0]]).toEqual([
      64,
      `error: --request-timeout "${time}" is not a time to wait`,
    ]);
  });
});
