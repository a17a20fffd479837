import { eventually } from './eventually.js';
import { startProcess, type RunningProcess } from './process.js';
import { serverBinary } from './server-binaries.js';

export interface EtcdProcessOptions {
  readonly name: string;
  readonly dataDir: string;
  readonly port: number;
  readonly peerPort: number;
  /** "NAME=URL,…" of all members. */
  readonly initialCluster: string;
  readonly args: readonly string[];
}

/** Runs one member and waits until it serves, which takes a majority of its cluster. */
export async function runEtcd(options: EtcdProcessOptions): Promise<RunningProcess> {
  const client = `http://127.0.0.1:${options.port}`;
  const peer = `http://127.0.0.1:${options.peerPort}`;
  const server = await startProcess({
    command: await serverBinary('etcd'),
    args: [
      ...['--name', options.name, '--data-dir', options.dataDir, '--initial-cluster', options.initialCluster],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ...['--logger', 'zap', '--log-level', 'warn'],
      ...options.args,
    ],
    // etcd 3.4 asks for this on arm64, and ignores it elsewhere.
    env: { ETCD_UNSUPPORTED_ARCH: process.arch === 'arm64' ? 'arm64' : undefined },
  });
  try {
    await eventually(() => healthy(client, server), { withinMs: 20_000, everyMs: 25, what: 'etcd to serve' });
  } catch (error) {
    await server.kill();
    throw new Error(`etcd did not start; it wrote:\n${server.output()}`, { cause: error });
  }
  if (!server.running()) throw new Error(`etcd did not start; it wrote:\n${server.output()}`);
  return server;
}

/** An etcd that has ended is "done waiting", too: the caller tells the difference. */
async function healthy(client: string, server: RunningProcess): Promise<boolean> {
  if (!server.running()) return true;
  const answer = await fetch(`${client}/health`, { signal: AbortSignal.timeout(1000) });
  return (await answer.text()).includes('"true"');
}
