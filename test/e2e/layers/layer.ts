import { freePort, startProcess, type RunningProcess } from '@bulwark/testing';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { startSidecar, type Sidecar } from '../programs.js';

const at = (file: string) => fileURLToPath(new URL(file, import.meta.url));

/** One call as the service itself saw it; null = there was no such header. */
export interface SeenCall {
  readonly service: string;
  readonly path: string;
  readonly attempt: string | null;
  readonly deadlineMs: string | null;
  readonly traceparent: string | null;
}

/** What a call had left when it reached the service, milliseconds; NaN = nobody said. */
export function deadlineOf(call: SeenCall | undefined): number {
  return Number(call?.deadlineMs ?? NaN);
}

/** A service in a process of its own, whose log is its standard output. */
export interface Service {
  readonly name: string;
  readonly process: RunningProcess;
  /** Calls whose path begins like this, in the order they came. */
  seen(path: string): SeenCall[];
}

/** `grpc` serves gRPC over cleartext HTTP/2, the others HTTP/1.1. */
export type Program = 'node' | 'python' | 'grpc';

/** What can run the plain middle service: Python where there is one. */
export function middleProgram(): 'node' | 'python' {
  const tried = spawnSync('python3', ['-c', 'import http.server, urllib.request']);
  if (tried.status === 0) return 'python';
  const why = tried.error?.message ?? String(tried.stderr);
  console.log(`No python3 that serves (${why.trim()}): a plain node:http program stands in the middle`);
  return 'node';
}

export interface PlainService {
  readonly name: string;
  readonly program: Program;
  readonly port: number;
  /** The service that it calls; absent = it is the leaf. */
  readonly next?: string;
  /** "host:port" of the proxy for its calls. */
  readonly proxy: string;
}

export async function startPlainService({
  name,
  program,
  port,
  next,
  proxy,
}: PlainService): Promise<Service> {
  const url = `http://${proxy}`;
  const running = await startProcess({
    ...commandOf(program, [name, String(port)], next && { next, proxy }),
    // Nothing may go around the proxy. gRPC clients are given its address instead: they would ask it for a tunnel.
    env:
      program === 'grpc'
        ? {}
        : { HTTP_PROXY: url, http_proxy: url, NO_PROXY: undefined, no_proxy: undefined },
    readyLine: /^(ready|listening on .*)$/,
  });
  return serviceOf(name, running);
}

function commandOf(
  program: Program,
  args: readonly string[],
  below: { next: string; proxy: string } | '' | undefined,
): { command: string; args: readonly string[] } {
  const rest = below ? [below.next] : [];
  switch (program) {
    case 'python':
      return { command: 'python3', args: [at('./plain_service.py'), ...args, ...rest] };
    case 'node':
      return tsProgram('./plain-service.ts', [...args, ...rest]);
    case 'grpc':
      return tsProgram('./grpc-service.ts', ['plain', ...args, ...(below ? [below.next, below.proxy] : [])]);
  }
}

/** A program of these tests, run by this very Node; it imports built packages only. */
export function tsProgram(
  file: string,
  args: readonly string[],
): { command: string; args: readonly string[] } {
  const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'];
  return { command: process.execPath, args: [...flags, at(file), ...args] };
}

export function serviceOf(name: string, running: RunningProcess): Service {
  const lines = () =>
    running
      .stdout()
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as SeenCall);
  return {
    name,
    process: running,
    seen: (path) => lines().filter((call) => call.path.startsWith(path)),
  };
}

/** A service with a sidecar on both sides of it. */
export interface Layer {
  readonly service: Service;
  readonly sidecar: Sidecar;
  /** "http://host:port" where callers reach it. */
  readonly url: string;
  stop(): Promise<void>;
}

export interface LayerOptions {
  readonly name: string;
  readonly program: Program;
  readonly next?: string;
  /** More flags of the sidecar: its control plane, its upstreams. */
  readonly sidecar: readonly string[];
}

export async function startLayer({ name, program, next, sidecar: flags }: LayerOptions): Promise<Layer> {
  const port = await freePort();
  const both = ['--inbound', '127.0.0.1:0', '--app', `http://127.0.0.1:${port}`];
  const sidecar = await startSidecar(['--service', name, '--namespace', 'shop', ...both, ...flags]);
  const service = await startPlainService({
    name,
    program,
    port,
    proxy: sidecar.listen,
    ...(next !== undefined && { next }),
  });
  return {
    service,
    sidecar,
    url: `http://${sidecar.inbound}`,
    stop: async () => {
      await Promise.all([sidecar.process.stop(), service.process.stop()]);
    },
  };
}
