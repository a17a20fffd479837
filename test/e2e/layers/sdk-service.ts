// A service with the SDK inside: NAME CONTROL_PLANE [NEXT NEXT_URL]. Without NEXT it is the leaf: "/dead" fails, the rest is
// well. The first line on stdout is where it listens, then one line of JSON a call.
import { connect } from '@bulwark/agent';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const [, , name = '', controlPlane = '', next, nextUrl] = process.argv;
const bulwark = await connect({ namespace: 'shop', service: name, controlPlane });

const server = createServer((incoming, response) => {
  const header = (of: string) => {
    const value = incoming.headers[of];
    return typeof value === 'string' ? value : null;
  };
  const line = {
    service: name,
    path: incoming.url ?? '/',
    attempt: header('bulwark-attempt'),
    deadlineMs: header('bulwark-deadline'),
    traceparent: header('traceparent'),
  };
  console.log(JSON.stringify(line));
  void bulwark.answering(header, () => answer(incoming, response));
});

async function answer({ url = '/' }: IncomingMessage, response: ServerResponse): Promise<void> {
  const asked = new URL(url, 'http://service').searchParams;
  if (asked.getAll('pause').includes(name)) await sleep(150);
  if (next === undefined) {
    response.writeHead(url.startsWith('/dead') ? 503 : 200).end('leaf');
    return;
  }
  const below = await bulwark.fetch(`${nextUrl}${url}`, { bulwark: { service: next } });
  const body = await below.text();
  // What only this layer was told may not be passed on by the service itself.
  response.writeHead(below.status, bulwark.answerHeaders()).end(body);
  console.log(JSON.stringify({ service: name, path: `ended ${url}` }));
}

server.listen(0, '127.0.0.1', () =>
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);
