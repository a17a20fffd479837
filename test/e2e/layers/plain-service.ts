// A plain service on node:http that knows nothing of Bulwark and passes `traceparent` on: NAME PORT [NEXT]. Calls to NEXT go
// where HTTP_PROXY says. One line of JSON a call on stdout. Without NEXT it is the leaf: "/dead" fails, the rest is well.
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const [, , name = '', port = '0', next] = process.argv;
const proxy = new URL(process.env['HTTP_PROXY'] ?? 'http://127.0.0.1:1');

createServer((incoming, response) => {
  const { url = '/', headers } = incoming;
  const line = {
    service: name,
    path: url,
    attempt: headers['bulwark-attempt'] ?? null,
    deadlineMs: headers['bulwark-deadline'] ?? null,
    traceparent: headers['traceparent'] ?? null,
  };
  console.log(JSON.stringify(line));
  incoming.resume();
  void answer(incoming, response);
}).listen(Number(port), '127.0.0.1', () => console.log('ready'));

async function answer({ url = '/', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const asked = new URL(url, 'http://service').searchParams;
  if (asked.getAll('pause').includes(name)) await sleep(150);
  if (next === undefined) {
    response.writeHead(url.startsWith('/dead') ? 503 : 200).end('leaf');
    return;
  }
  const trace = asked.getAll('forgets').includes(name) ? undefined : headers['traceparent'];
  const call = request({
    host: proxy.hostname,
    port: proxy.port,
    path: `http://${next}${url}`,
    headers: { host: next, ...(typeof trace === 'string' && { traceparent: trace }) },
  });
  call.once('response', (below) => {
    response.writeHead(below.statusCode ?? 502);
    below.pipe(response);
  });
  call.once('error', (error) => response.writeHead(502).end(String(error)));
  call.end();
}
