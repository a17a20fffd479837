import { freePort, serverBinary, startProcess, type RunningProcess } from '@bulwark/testing';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A running proxy. */
export interface Proxy {
  readonly process: RunningProcess;
  readonly port: number;
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Everything a policy can ask of a call that goes well. */
const policy = {
  apiVersion: 'bulwark.dev/v1',
  kind: 'ResiliencePolicy',
  metadata: { name: 'reco' },
  spec: {
    target: { service: 'reco' },
    timeout: { attempt: '2s', total: '5s' },
    retry: { maxAttempts: 3, backoff: { base: '10ms', max: '100ms' } },
    bulkhead: { maxConcurrent: 500, maxQueued: 100, maxWait: '1s' },
    circuitBreaker: { scope: 'Instance', trip: { consecutiveFailures: 10 }, cooldown: { initial: '30s' } },
  },
};

export async function startUpstream(): Promise<Proxy> {
  return started(await startProcess(node([here('./upstream-main.js')])));
}

export async function startBareProxy(upstream: number): Promise<Proxy> {
  return started(await startProcess(node([here('./bare-proxy-main.js'), String(upstream)])));
}

/** With a policy in force, and no control plane. */
export async function startSidecar(upstream: number, directory: string): Promise<Proxy> {
  const bootstrap = join(directory, 'policies.json');
  writeFileSync(bootstrap, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [policy] }));
  const port = await freePort();
  const flags = [
    ...['--service', 'bench', '--listen', `127.0.0.1:${port}`, '--admin', '127.0.0.1:0'],
    ...['--control-plane', '127.0.0.1:1', '--bootstrap', bootstrap],
    ...['--upstream', `reco=http://127.0.0.1:${upstream}`],
  ];
  const main = here('../../../../apps/agent/dist/main.js');
  return { port, process: await startProcess({ ...node([main, ...flags]), readyLine: '"listening"' }) };
}

export async function startNginx(upstream: number, directory: string): Promise<Proxy> {
  const command = await serverBinary('nginx');
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  mkdirSync(join(directory, 'nginx'), { recursive: true });
  const config = join(directory, 'nginx.conf');
  writeFileSync(
    config,
    `daemon off; master_process off; worker_processes 1; pid ${directory}/nginx.pid; error_log stderr notice;
    events { worker_connections 1024; }
    http {
      access_log off; keepalive_requests 1000000000;
      ${temporary.map((name) => `${name}_temp_path ${directory}/nginx;`).join(' ')}
      upstream u { server 127.0.0.1:${upstream}; keepalive 256; keepalive_requests 1000000000; }
      server {
        listen 127.0.0.1:${port};
        location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection ""; }
      }
    }`,
  );
  const args = ['-c', config, '-p', directory, '-e', 'stderr'];
  return { port, process: await startProcess({ command, args }) };
}

export async function startHaproxy(upstream: number, directory: string): Promise<Proxy> {
  const command = await serverBinary('haproxy');
  const port = await freePort();
  const config = join(directory, 'haproxy.cfg');
  writeFileSync(
    config,
    `global
  nbthread 1
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
frontend f
  bind 127.0.0.1:${port}
  default_backend b
backend b
  http-reuse always
  server s 127.0.0.1:${upstream}
`,
  );
  return { port, process: await startProcess({ command, args: ['-db', '-f', config] }) };
}

function node(args: readonly string[]): { command: string; args: readonly string[] } {
  return { command: process.execPath, args };
}

async function started(process: RunningProcess): Promise<Proxy> {
  const line = await process.waitForLine('listening on');
  return { process, port: Number(line.replace(/^.* /, '')) };
}
