import { join } from 'node:path';
import { runEtcd } from './etcd-process.js';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import type { RunningProcess } from './process.js';
import { temporaryDirectory } from './temporary-directory.js';

export interface EtcdMember {
  readonly endpoint: string;
  /** SIGKILL; the data stay. */
  kill(): Promise<void>;
  /** Starts it again and waits until it serves: a majority must run. */
  start(): Promise<void>;
  pause(): void;
  resume(): void;
  running(): boolean;
}

export interface EtcdCluster extends AsyncDisposable {
  readonly members: readonly EtcdMember[];
  readonly endpoints: readonly string[];
  /** The member that leads now; waits for an election. */
  leader(): Promise<EtcdMember>;
  stop(): Promise<void>;
}

/** Starts a real etcd cluster on this machine; `size` is odd, default 3. */
export async function startEtcdCluster({ size = 3 } = {}): Promise<EtcdCluster> {
  const scratch = temporaryDirectory('etcd-cluster');
  const places: { name: string; port: number; peerPort: number }[] = [];
  for (let at = 0; at < size; at += 1) {
    places.push({ name: `m${at}`, port: await freePort(), peerPort: await freePort() });
  }
  const initialCluster = places.map(({ name, peerPort }) => `${name}=http://127.0.0.1:${peerPort}`).join(',');
  const processes = new Map<string, RunningProcess>();
  const members = places.map((place): EtcdMember => {
    const process = () => processes.get(place.name);
    const start = async () => {
      const dataDir = join(scratch.path, place.name);
      processes.set(place.name, await runEtcd({ ...place, dataDir, initialCluster, args: [] }));
    };
    return {
      endpoint: `http://127.0.0.1:${place.port}`,
      start,
      kill: async () => void (await process()?.kill()),
      pause: () => process()?.pause(),
      resume: () => process()?.resume(),
      running: () => process()?.running() ?? false,
    };
  });
  const stop = async () => {
    await Promise.all(members.map((member) => member.kill()));
    scratch.remove();
  };
  const started = await Promise.allSettled(members.map((member) => member.start()));
  const failed = started.find((each) => each.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  return {
    members,
    endpoints: members.map(({ endpoint }) => endpoint),
    leader: () => eventually(() => leaderOf(members), { withinMs: 15_000, what: 'a leader' }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function leaderOf(members: readonly EtcdMember[]): Promise<EtcdMember | false> {
  for (const member of members.filter((each) => each.running())) {
    const answer = await fetch(`${member.endpoint}/v3/maintenance/status`, {
      method: 'POST',
      body: '{}',
      signal: AbortSignal.timeout(1000),
    });
    const status = (await answer.json()) as { leader?: string; header?: { member_id?: string } };
    if (status.leader !== undefined && status.leader === status.header?.member_id) return member;
  }
  return false;
}
