// What a proxy costs that is nothing but node:http on both sides: no policy, no check, no header rewritten.
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

const port = Number(process.argv[2]);
const agent = new Agent({ keepAlive: true, maxFreeSockets: 256 });

const server = createServer((incoming, response) => {
  const { method, url: path, rawHeaders: headers } = incoming;
  const outgoing = request({ host: '127.0.0.1', port, method, path, headers, agent, setHost: false });
  outgoing.on('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    answer.pipe(response);
  });
  outgoing.on('error', () => response.destroy());
  incoming.pipe(outgoing);
});
server.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as AddressInfo).port}`);
});
process.stdin.on('end', () => process.exit()).resume();
