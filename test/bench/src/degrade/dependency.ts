import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Behaviour, Command, Reply, ServiceLog } from './messages.js';

const program = fileURLToPath(new URL('./dependency-main.js', import.meta.url));

/** The dependency's process, as the suite commands it. */
export class Dependency implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (logs: Readonly<Record<string, ServiceLog>>) => void>();
  readonly #port: number;
  #commands = 0;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#port = port;
    child.on('message', (reply: Reply) => {
      if (reply.kind !== 'done') return;
      this.#waiting.get(reply.id)?.(reply.logs);
      this.#waiting.delete(reply.id);
    });
  }

  static async start(): Promise<Dependency> {
    const child = fork(program);
    const port = await new Promise<number>((resolve, reject) => {
      child.once('message', (reply: Reply) => {
        if (reply.kind === 'listening') resolve(reply.port);
      });
      child.once('exit', (code) => reject(new Error(`the dependency ended with code ${code}`)));
    });
    return new Dependency(child, port);
  }

  url(service: string, operation: string): string {
    return `http://127.0.0.1:${this.#port}/${service}/${operation}`;
  }

  /** In force when it resolves, for calls from then on. */
  async behave(services: Readonly<Record<string, Behaviour>>): Promise<void> {
    await this.#command({ id: this.#nextId(), do: 'behave', services });
  }

  /** What the dependency saw of a service. */
  async log(service: string): Promise<ServiceLog> {
    const logs = await this.#command({ id: this.#nextId(), do: 'log' });
    return logs[service] ?? { calls: 0, inFlight: 0, inFlightMax: 0 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.disconnect();
    await ended;
  }

  #nextId(): number {
    this.#commands += 1;
    return this.#commands;
  }

  #command(command: Command): Promise<Readonly<Record<string, ServiceLog>>> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(command.id, resolve);
      this.#child.send(command, (error) => error && reject(error));
    });
  }
}
