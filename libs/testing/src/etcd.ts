import { freePort } from './free-port.js';
import { runEtcd } from './etcd-process.js';
import type { RunningProcess } from './process.js';
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
  const place = { port: options.port ?? 0, peerPort: 0 };
  let server: RunningProcess;
  const launch = async () => {
    const { port, peerPort } = place;
    const initialCluster = `test=http://127.0.0.1:${peerPort}`;
    server = await runEtcd({
      name: 'test',
      dataDir,
      port,
      peerPort,
      initialCluster,
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
