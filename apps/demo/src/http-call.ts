import { Agent, request } from 'node:http';
import type { Attempt } from '@bulwark/agent';

/** What the dependency answered. */
export interface HttpAnswer {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  readonly body: string;
}

const connections = new Agent({ keepAlive: true, maxSockets: 256 });

/** One plain HTTP call that ends when the attempt's signal says so. */
export function httpGet(url: string, headers: Record<string, string>, attempt: Attempt): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const call = request(url, { headers, agent: connections, signal: attempt.signal }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.once('error', reject);
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          header: (name) => {
            const value = response.headers[name.toLowerCase()];
            return Array.isArray(value) ? value.join(', ') : value;
          },
          body,
        }),
      );
    });
    call.once('error', reject);
    call.end();
  });
}

export function closeConnections(): void {
  connections.destroy();
}
