import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { keepTrackOf } from './live-children.js';
import type { AgentStats, CallerCommand, CallerMessage, CallerSettings } from './messages.js';

const program = fileURLToPath(new URL('../dist/caller-main.js', import.meta.url));
const STOP_MS = 5_000;

export interface StateChange {
  readonly agent: string;
  readonly service: string;
  readonly state: string;
  readonly atMs: number;
}

/** Processes with agents in them, calling the demo's dependency at a steady rate. */
export class CallerFleet {
  private readonly children: ChildProcess[] = [];
  private readonly processOf = new Map<string, ChildProcess>();
  private readonly changes: StateChange[] = [];
  private readonly ready: Promise<void>[] = [];

  start(settings: CallerSettings): void {
    const child = keepTrackOf(
      fork(program, [JSON.stringify(settings)], {
        // No flags of this process: a test runner's would make the built program look for sources.
        execArgv: [],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      }),
    );
    this.children.push(child);
    for (const instance of settings.instances) this.processOf.set(instance, child);
    this.ready.push(
      new Promise((resolve, reject) => {
        child.once('exit', (code) => reject(new Error(`a caller process ended early (exit code ${code})`)));
        child.on('message', (message: CallerMessage) => {
          if (message.type === 'ready') resolve();
          if (message.type === 'state') this.changes.push(message);
        });
      }),
    );
    // A caller that ends early is reported by whoever awaits `untilReady`.
    this.ready.at(-1)?.catch(() => undefined);
  }

  async untilReady(): Promise<void> {
    await Promise.all(this.ready);
  }

  /** Changes of agents' breakers of one service since a point of the machine's monotonic clock. */
  changesOf(service: string, sinceMs: number): StateChange[] {
    return this.changes.filter((one) => one.service === service && one.atMs >= sinceMs);
  }

  /** From now on all agents call these services only. */
  choose(services: readonly string[]): void {
    for (const child of this.living()) child.send({ type: 'choose', services } satisfies CallerCommand);
  }

  /** SIGKILL for the process that holds this agent. */
  kill(agent: string): void {
    this.processOf.get(agent)?.kill('SIGKILL');
  }

  /** Of the processes that live: what one counted that was killed went with it. */
  async stats(): Promise<AgentStats[]> {
    return (await Promise.all(this.living().map(statsOf))).flat();
  }

  private living(): ChildProcess[] {
    return this.children.filter(({ connected }) => connected);
  }

  async stop(): Promise<void> {
    await Promise.all(this.children.map(stopChild));
  }
}

function statsOf(child: ChildProcess): Promise<readonly AgentStats[]> {
  return new Promise((resolve) => {
    const end = (agents: readonly AgentStats[]): void => {
      child.off('message', listen).off('exit', gone);
      resolve(agents);
    };
    const listen = (message: CallerMessage): void => {
      if (message.type === 'stats') end(message.agents);
    };
    const gone = (): void => end([]);
    child.on('message', listen).once('exit', gone);
    child.send({ type: 'stats' }, (error) => {
      if (error) gone();
    });
  });
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  if (child.connected) child.send({ type: 'stop' }, () => undefined);
  else child.kill('SIGTERM');
  await ended;
  clearTimeout(timer);
}
