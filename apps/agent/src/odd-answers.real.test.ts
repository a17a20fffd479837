import { createServer, type AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { atEnd, cleanUp, inbound, send, sidecar, via } from './sidecar-fixture.js';

afterEach(cleanUp);

/** A server that says `text` to everyone, and then stays or goes. */
async function sayer(text: string, stays: boolean): Promise<{ url: string; heard: () => number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined).resume();
    if (stays) socket.write(text);
    else socket.end(text);
    atEnd(() => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => new Promise((resolve) => server.close(resolve)));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard: () => connections,
  };
}

const retried = {
  target: { service: 'fraud-api' },
  timeout: { total: '30s' },
  retry: { maxAttempts: 3 },
};

it.each([
  ['lines that end with LF', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', /LF instead of CRLF/],
  ['another protocol', 'SSH-2.0-x\r\n', /does not begin with a status line of HTTP\/1/],
])(
  'an upstream that speaks %s is told of with the reason, at once and unrepeated',
  async (_what, text, why) => {
    for (const stays of [true, false]) {
      const { url, heard } = await sayer(text, stays);
      const { listen } = await sidecar([retried], { 'fraud-api': url });
      const reply = await via(listen, 'http://fraud-api/check');
      expect(reply.status).toBe(502);
      expect(reply.body).toContain('BAD_ANSWER');
      expect(reply.body).toMatch(why);
      expect(heard()).toBe(1);
      const behind = await inbound(url);
      const answer = await send(behind.inbound, '/check');
      expect(answer.status).toBe(502);
      expect(answer.body).toMatch(why);
    }
  },
);

it('a dependency that is not reached is told of with its address, and with the flag that maps its name', async () => {
  const { listen } = await sidecar([], { mapped: 'http://127.0.0.1:1' });
  const detail = async (url: string): Promise<unknown> => {
    const reply = await via(listen, url);
    expect(reply.status).toBe(502);
    return (JSON.parse(reply.body) as { detail: string }).detail;
  };
  expect(await detail('http://mapped/x')).toBe(
    'The call to mapped failed after 1 attempt(s) at 127.0.0.1:1: ECONNREFUSED.',
  );
  expect(await detail('http://no-such-name.invalid/x')).toMatch(
    /at no-such-name\.invalid:80: (ENOTFOUND|EAI_AGAIN)\. No --upstream names .* say --upstream no-such-name\.invalid=URL\.$/,
  );
});
