import { createServer } from 'node:net';

/**
 * A TCP port of 127.0.0.1 that nobody listened on a moment ago. Somebody may take it before you do: where a server can
 * listen on port 0, let it.
 */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port);
        else reject(new Error('The system gave no port'));
      });
    });
  });
}
