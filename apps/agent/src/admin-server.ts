import type { AgentState } from '@bulwark/agent';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AcceptedWork } from './accepted-work.js';
import type { InboundSource } from './inbound-metrics.js';
import { isLoopback } from './loopback.js';
import type { SidecarMetrics } from './sidecar-metrics.js';

export interface AdminSource {
  /** Where it listens. */
  readonly host: string;
  /** Undefined = the agent has not started yet. */
  readonly state: () => AgentState | undefined;
  readonly draining: () => boolean;
  readonly metrics: SidecarMetrics;
  readonly sides: Sides;
}

export interface Sides {
  readonly outbound: AcceptedWork;
  /** Undefined = there is no inbound side. */
  readonly inbound: InboundSource | undefined;
}

const PATHS = '/healthz, /readyz, /metrics, /state';

/** Health, readiness, metrics and state of one sidecar; reads only. */
export function adminServer(source: AdminSource): Server {
  return createServer({ maxHeaderSize: 16 * 1024 }, (request, response) => {
    if (isForeign(request.headers.host, source.host)) {
      return text(
        response,
        403,
        `the Host header is no name of this machine: use localhost or ${source.host}`,
      );
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return text(response, 405, 'GET only');
    }
    const [path] = (request.url ?? '/').split('?');
    switch (path) {
      case '/healthz':
        return text(response, 200, 'ok');
      case '/readyz': {
        const { ready, reason } = readiness(source);
        return text(response, ready ? 200 : 503, reason === '' ? 'ok' : reason);
      }
      case '/state':
        return json(response, { ...stateOf(source), sidecar: sidecarState(source.sides) });
      case '/metrics':
        return void metrics(response, source.metrics);
      default:
        return text(response, 404, `not here: ${PATHS}`);
    }
  });
}

/**
 * A page of the web can make a name of its own mean 127.0.0.1, and read what is here in the browser of someone at this
 * machine. Its requests carry that name. Beyond loopback any name may be this sidecar's.
 */
function isForeign(host: string | undefined, listenHost: string): boolean {
  if (!isLoopback(listenHost) || host === undefined) return false;
  const name = host
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
  return !isLoopback(name) && name !== listenHost;
}

function stateOf(source: AdminSource): object {
  return source.state() ?? { readiness: readiness(source) };
}

/** What the agent's state does not know: the two sides and how they are joined. */
function sidecarState({ outbound, inbound }: Sides): object {
  const join = inbound && { callsInFlight: inbound.join.size, ...inbound.join.totals() };
  return { outbound: outbound.counts(), ...(inbound && { inbound: inbound.work.counts(), join }) };
}

function readiness(source: AdminSource): AgentState['readiness'] {
  if (source.draining()) return { ready: false, reason: 'shutting down' };
  return source.state()?.readiness ?? { ready: false, reason: 'starting' };
}

async function metrics(response: ServerResponse, { registry }: SidecarMetrics): Promise<void> {
  try {
    const body = await registry.metrics();
    response.writeHead(200, { 'Content-Type': registry.contentType });
    response.end(body);
  } catch (error) {
    text(response, 500, error instanceof Error ? error.message : 'metrics failed');
  }
}

function text(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(`${body}\n`);
}

function json(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(`${JSON.stringify(body, null, 2)}\n`);
}
