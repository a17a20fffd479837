import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { machineMs } from './clock.js';

/** One request that reached a service: the dependency's own word, whatever the callers believe. */
export interface Arrival {
  /** On the machine's monotonic clock. */
  readonly atMs: number;
  readonly agent: string;
  /** Epoch of the verdict the caller had in force; 0 = none. */
  readonly epoch: number;
  readonly status: number;
}

type Health = 'ok' | 'failing' | 'hanging';

const KEPT_ARRIVALS = 200_000;
const HANG_MS = 30_000;

/**
 * Services that can be broken by one request. `GET /svc/NAME/…` is a call; `POST /break/NAME[?mode=hang]`, `POST /heal/NAME`,
 * `GET /status` and `GET /log/NAME?since=MS` are the controls.
 */
export class Dependency {
  private readonly health = new Map<string, Health>();
  private readonly arrivals = new Map<string, Arrival[]>();
  /** All there ever were; of the arrivals only the newest are kept. */
  private readonly calls = new Map<string, number>();
  private readonly server: Server;

  constructor(services: readonly string[]) {
    for (const service of services) {
      this.health.set(service, 'ok');
      this.arrivals.set(service, []);
    }
    this.server = createServer((request, response) => this.route(request, response));
    this.server.keepAliveTimeout = 60_000;
  }

  async listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, '127.0.0.1', resolve);
    });
    return (this.server.address() as AddressInfo).port;
  }

  /** What reached one service so far, oldest first. */
  log(service: string): readonly Arrival[] {
    return this.arrivals.get(service) ?? [];
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private route(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? '/';
    if (!URL.canParse(path, 'http://dependency')) return answer(response, 400, { error: 'no path' });
    const url = new URL(path, 'http://dependency');
    const [, verb = '', name = ''] = url.pathname.split('/');
    if (verb === 'status') return answer(response, 200, this.status());
    const arrivals = this.arrivals.get(name);
    if (arrivals === undefined) {
      const known = [...this.health.keys()].join(', ');
      return answer(response, 404, { error: `no service "${name}" here; there are: ${known}` });
    }
    if (verb === 'svc') return this.serve(name, request, response);
    if (verb === 'log') {
      const since = Number(url.searchParams.get('since') ?? 0);
      return answer(response, 200, { arrivals: arrivals.filter((one) => one.atMs >= since) });
    }
    if (request.method !== 'POST') return answer(response, 405, { error: 'use POST' });
    if (verb === 'break')
      this.health.set(name, url.searchParams.get('mode') === 'hang' ? 'hanging' : 'failing');
    else if (verb === 'heal') this.health.set(name, 'ok');
    else return answer(response, 404, { error: 'try /break/NAME, /heal/NAME, /status or /log/NAME' });
    return answer(response, 200, { service: name, health: this.health.get(name), atMs: machineMs() });
  }

  private serve(name: string, request: IncomingMessage, response: ServerResponse): void {
    request.resume();
    const health = this.health.get(name) ?? 'ok';
    const status = health === 'ok' ? 200 : 500;
    this.remember(name, {
      atMs: machineMs(),
      agent: String(request.headers['x-demo-agent'] ?? ''),
      epoch: Number(request.headers['x-demo-epoch'] ?? 0),
      status,
    });
    if (health === 'hanging') {
      const timer = setTimeout(() => answer(response, 500, { error: 'too late' }), HANG_MS);
      response.once('close', () => clearTimeout(timer));
      return;
    }
    answer(
      response,
      status,
      health === 'ok' ? { service: name, items: ['a', 'b', 'c'] } : { error: `${name} is broken` },
    );
  }

  private remember(name: string, arrival: Arrival): void {
    const arrivals = this.arrivals.get(name);
    if (arrivals === undefined) return;
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    if (arrivals.length >= KEPT_ARRIVALS) arrivals.splice(0, KEPT_ARRIVALS / 2);
    arrivals.push(arrival);
  }

  private status(): unknown {
    return {
      services: [...this.health].map(([service, health]) => ({
        service,
        health,
        calls: this.calls.get(service) ?? 0,
      })),
    };
  }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}
