import { fileURLToPath } from 'node:url';
import { startProcess, type RunningProcess } from '@bulwark/testing';

export const repository = fileURLToPath(new URL('../../', import.meta.url));
export const bulwark = `${repository}bulwark`;

export interface Server {
  readonly process: RunningProcess;
  /** "127.0.0.1:PORT". */
  readonly http: string;
  readonly grpc: string;
}

/** A real replica; on free ports unless told otherwise. */
export async function startServer(args: readonly string[]): Promise<Server> {
  const free = ['--http', '--grpc'].flatMap((flag) => (args.includes(flag) ? [] : [flag, '127.0.0.1:0']));
  const process = await startProcess({ command: bulwark, args: ['server', ...free, ...args] });
  const listening = await listeningLine(process);
  return { process, http: String(listening['http']), grpc: String(listening['grpc']) };
}

export interface Sidecar {
  readonly process: RunningProcess;
  readonly listen: string;
  readonly admin: string;
  /** "" = it has no inbound side. */
  readonly inbound: string;
}

export async function startSidecar(args: readonly string[]): Promise<Sidecar> {
  const process = await startProcess({
    command: bulwark,
    args: ['agent', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', ...args],
  });
  const listening = await listeningLine(process);
  const text = (name: string) => {
    const value = listening[name];
    return typeof value === 'string' ? value : '';
  };
  return { process, listen: text('listen'), admin: text('admin'), inbound: text('inbound') };
}

async function listeningLine(process: RunningProcess): Promise<Record<string, unknown>> {
  try {
    const line = await process.waitForLine(/"msg":"listening"/, { withinMs: 20_000 });
    return JSON.parse(line) as Record<string, unknown>;
  } catch (error) {
    await process.kill();
    throw error;
  }
}

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command to its end, as a person would. */
export async function run(args: readonly string[], input?: string): Promise<CommandResult> {
  const process = await startProcess({ command: bulwark, args });
  if (input !== undefined) process.write(input);
  process.endInput();
  const { code } = await process.exited;
  const stdout = process.stdout();
  return { code, stdout, stderr: process.stderr() };
}

/** A JSON answer of a server; other statuses than 2xx are errors with the body. */
export async function getJson<T>(url: string): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
  return JSON.parse(text) as T;
}
