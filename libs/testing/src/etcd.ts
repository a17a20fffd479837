import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { startProcess, type RunningProcess } from './process.js';
import { serverBinary } from './server-binaries.js';
import { temporaryDirectory } from './temporary-directory.js';

export interface EtcdOptions {
  /** Kept when the fixture stops. Absent: a temporary directory that `stop` deletes. */
  readonly dataDir?: string;
  /** Client port of 127.0.0.1; absent or 0: a free one. */
  readonly port?: number;
  /** More flags of etcd. */
  readonly args?: readonly string[];
}

export interface Etcd extends AsyncDisposable {
  /** "http://127.0.0.1:PORT"; stays the same through `kill` and `start`. */
  readonly endpoint: string;
  readonly port: number;
  readonly dataDir: string;
  /** SIGKILL. The data stay; `start` brings it back. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data, and waits until it serves. */
  start(): Promise<void>;
  /** SIGSTOP: connections stand, nothing answers. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  output(): string;
  /** Ends it and deletes its temporary directory. Idempotent. */
  stop(): Promise<void>;
}

/** Starts a real single-member etcd and waits until it serves. */
export async function startEtcd(options: EtcdOptions = {}): Promise<Etcd> {
  const scratch = options.dataDir === undefined ? temporaryDirectory('etcd') : undefined;
  const dataDir = options.dataDir ?? scratch?.path ?? '';
  const binary = await serverBinary('etcd');
  const place = { port: options.port ?? 0, peerPort: 0 };
  let server: RunningProcess;
  const launch = async () => {
    server = await serve({
      binary,
      dataDir,
      port: place.port,
      peerPort: place.peerPort,
      args: options.args ?? [],
    });
  };
  try {
    await onFreePorts(place, launch);
  } catch (error) {
    scratch?.remove();
    throw error;
  }
  const stop = async () => {
    await server.kill();
    scratch?.remove();
  };
  return {
    endpoint: `http://127.0.0.1:${place.port}`,
    port: place.port,
    dataDir,
    kill: async () => void (await server.kill()),
    start: launch,
    pause: () => server.pause(),
    resume: () => server.resume(),
    output: () => server.output(),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** A port found free may be taken a moment later: then other ones, three times in all, unless the port was asked for. */
async function onFreePorts(
  place: { port: number; peerPort: number },
  launch: () => Promise<void>,
): Promise<void> {
  const asked = place.port;
  for (let attempt = 1; ; attempt += 1) {
    place.port = asked === 0 ? await freePort() : asked;
    place.peerPort = await freePort();
    try {
      return await launch();
    } catch (error) {
      const taken = error instanceof Error && error.message.includes('address already in use');
      if (!taken || asked !== 0 || attempt === 3) throw error;
    }
  }
}

interface Launch {
  readonly binary: string;
  readonly dataDir: string;
  readonly port: number;
  readonly peerPort: number;
  readonly args: readonly string[];
}

async function serve({ binary, dataDir, port, peerPort, args }: Launch): Promise<RunningProcess> {
  const client = `http://127.0.0.1:${port}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const server = await startProcess({
    command: binary,
    args: [
      ...['--name', 'test', '--data-dir', dataDir, '--logger', 'zap', '--log-level', 'warn'],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...[
        '--listen-peer-urls',
        peer,
        '--initial-advertise-peer-urls',
        peer,
        '--initial-cluster',
        `test=${peer}`,
      ],
      ...args,
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
