// The upstream of the suite, a process of its own: answers are written as they are, so that it costs next to nothing.
import { createServer, type AddressInfo } from 'node:net';
import { SIZES } from './sizes.js';

const answers = new Map(
  Object.entries(SIZES).map(([path, bytes]) => {
    const head = [
      'HTTP/1.1 200 OK',
      'Date: Mon, 30 Nov 2026 12:00:00 GMT',
      'Content-Type: application/json',
      'Cache-Control: no-cache',
      'X-Request-Id: 0af7651916cd43dd8448eb211c80319c',
      `Content-Length: ${bytes}`,
    ].join('\r\n');
    return [path, Buffer.from(`${head}\r\n\r\n${'x'.repeat(bytes)}`)];
  }),
);

const server = createServer({ noDelay: true }, (socket) => {
  let text = '';
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
      const path = text.split(' ', 2)[1] ?? '';
      text = text.slice(end + 4);
      socket.write(answers.get(path) ?? 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');
    }
  });
});
server.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as AddressInfo).port}`);
});
// Its parent is gone: nothing is left to answer.
process.stdin.on('end', () => process.exit()).resume();
