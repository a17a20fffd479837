/** What the tests of the sidecar share. No test framework in here. */
import { silentLogger } from '@bulwark/agent';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type RequestListener,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runSidecar, type SidecarIo } from './index.js';
import type { SidecarPorts } from './run-sidecar.js';

const cleanups: (() => unknown)[] = [];

/** Runs when the test ends, the last one first. */
export function atEnd(cleanup: () => unknown): void {
  cleanups.push(cleanup);
}

export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

export interface Running extends SidecarPorts {
  readonly signal: (name?: string) => void;
  readonly exit: Promise<number>;
  readonly logs: { message: string; fields: object }[];
}

/** A sidecar in this process, with policies from a bootstrap file and a control plane that is not there. */
export async function sidecar(
  policies: object[],
  upstreams: Record<string, string>,
  more: string[] = [],
): Promise<Running> {
  const directory = mkdtempSync(join(tmpdir(), 'bulwark-sidecar-'));
  atEnd(() => rmSync(directory, { recursive: true, force: true }));
  const bootstrap = join(directory, 'policies.json');
  writeFileSync(
    bootstrap,
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...policies, unusedSpec].map(asPolicy) }),
  );
  const argv = [
    ...['--service', 'storefront', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'],
    ...['--control-plane', '127.0.0.1:1', '--bootstrap', bootstrap],
    ...Object.entries(upstreams).flatMap(([name, url]) => ['--upstream', `${name}=${url}`]),
    ...more,
  ];
  const logs: Running['logs'] = [];
  let listener: (signal: string) => void = () => undefined;
  const ports = await new Promise<SidecarPorts & { exit: Promise<number> }>((resolve, reject) => {
    const exit = runSidecar(
      argv,
      {},
      {
        ...quiet(logs),
        err: (text) => reject(new Error(text)),
        onSignal: (heard) => {
          listener = heard;
          return () => undefined;
        },
        onListening: (bound) => queueMicrotask(() => resolve({ ...bound, exit })),
      },
    );
    exit.catch(reject);
  });
  const signal = (name = 'SIGTERM') => listener(name);
  let over = false;
  void ports.exit.then(() => {
    over = true;
  });
  atEnd(async () => {
    if (!over) signal();
    if (!over) signal();
    await ports.exit;
  });
  return { ...ports, signal, logs };
}

/** A sidecar before `app` as well; answers the port of its inbound side too. */
export async function inbound(
  app: string,
  policies: object[] = [],
  upstreams: Record<string, string> = {},
  more: string[] = [],
): Promise<Running & { readonly inbound: number }> {
  const flags = ['--inbound', '127.0.0.1:0', '--app', app];
  const running = await sidecar(policies, upstreams, [...flags, ...more]);
  if (running.inbound === undefined) throw new Error('no inbound side');
  return { ...running, inbound: running.inbound };
}

export function quiet(logs: Running['logs'] = []): SidecarIo {
  const line = (fields: object, message: string) => void logs.push({ message, fields });
  const logger = { ...silentLogger, info: line, warn: line, error: line, child: () => logger };
  return { logger, out: () => undefined, err: () => undefined, onSignal: () => () => undefined };
}

const asPolicy = (spec: object) => ({
  apiVersion: 'bulwark.dev/v1',
  kind: 'ResiliencePolicy',
  metadata: { name: (spec as { target: { service: string } }).target.service },
  spec,
});

export async function upstream(listener: RequestListener, host = '127.0.0.1'): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  atEnd(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly trailers: NodeJS.Dict<string>;
}

/** Connections of `via`; some tests end them. */
export const agent = new Agent({ keepAlive: true, maxSockets: 500 });

export interface SendOptions {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  /** The address this caller has. */
  readonly localAddress?: string;
}

/** As curl -x does it: absolute form to the proxy. */
export function via(port: number, url: string, options: SendOptions = {}): Promise<Reply> {
  const headers = { host: new URL(url).host, ...options.headers };
  return send(port, url, { ...options, headers });
}

/** As any caller of a service does it: a path. */
export function send(port: number, path: string, options: SendOptions = {}): Promise<Reply> {
  const { body, ...rest } = options;
  return new Promise((resolve, reject) => {
    const call = httpRequest({ host: '127.0.0.1', port, path, agent, ...rest }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
          trailers: response.trailers,
        }),
      );
    });
    call.on('error', reject);
    call.end(body);
  });
}

export const admin = async (port: number, path: string) => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return { status: response.status, body: await response.text() };
};

export const median = (values: number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

/** A policy for a service that no test calls: calls of others pass unguarded. */
const unusedSpec = { target: { service: 'unused' }, timeout: { total: '1s' } };

export const fraudSpec = {
  target: { service: 'fraud-api' },
  timeout: { attempt: '200ms', total: '1s' },
  circuitBreaker: {
    scope: 'Instance',
    trip: { consecutiveFailures: 3 },
    cooldown: { initial: '30s' },
  },
};
