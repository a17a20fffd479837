import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { keepTrackOf } from './live-children.js';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const bulwark = `${repository}bulwark`;
const START_MS = 20_000;
const STOP_MS = 12_000;

/** A started program that said on which addresses it listens. */
export interface Program {
  readonly listening: Readonly<Record<string, unknown>>;
  /** SIGTERM, then SIGKILL after 12 s. */
  stop(): Promise<void>;
  /** Ends when the process does. */
  readonly ended: Promise<number | null>;
}

export interface ServerAddresses {
  readonly http: string;
  readonly grpc: string;
}

export async function startControlPlane(
  args: readonly string[],
): Promise<Program & { addresses: ServerAddresses }> {
  const program = await startProgram('control plane', bulwark, ['server', ...args]);
  const { http, grpc } = program.listening;
  return { ...program, addresses: { http: String(http), grpc: String(grpc) } };
}

export async function startDependency(
  port: number,
  services: readonly string[],
): Promise<Program & { port: number }> {
  const file = fileURLToPath(new URL('../dist/dependency-main.js', import.meta.url));
  const program = await startProgram('dependency', process.execPath, [file, String(port), ...services]);
  return { ...program, port: Number(program.listening['port']) };
}

/** Runs the command as a person would; a failure carries what it printed. */
export async function runBulwark(args: readonly string[]): Promise<string> {
  const child = keepTrackOf(spawn(bulwark, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`bulwark ${args.join(' ')} ended with ${code}:\n${stderr}${stdout}`);
  return stdout;
}

async function startProgram(name: string, command: string, args: readonly string[]): Promise<Program> {
  // Its own process group: Ctrl-C in a terminal reaches the parent only, which then stops everything in order.
  const child = keepTrackOf(spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true }));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const listening = await firstListeningLine(name, child);
  return { listening, ended, stop: () => stopProcess(child, ended) };
}

async function firstListeningLine(name: string, child: ChildProcess): Promise<Record<string, unknown>> {
  const said: string[] = [];
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the ${name} did not start within ${START_MS / 1_000} s:\n${said.join('\n')}`));
    }, START_MS);
    const read = (line: string) => {
      const value = parseJson(line);
      said.push(typeof value?.['msg'] === 'string' ? value['msg'] : line);
      if (said.length > 100) said.shift();
      if (value?.['msg'] !== 'listening') return;
      clearTimeout(timer);
      resolve(value);
    };
    for (const stream of [child.stdout, child.stderr])
      if (stream) createInterface({ input: stream }).on('line', read);
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once('close', (code) => {
      clearTimeout(timer);
      reject(
        new Error(`the ${name} ended with exit code ${code} before it listened:\n  ${said.join('\n  ')}`),
      );
    });
  });
}

function parseJson(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

async function stopProcess(child: ChildProcess, ended: Promise<number | null>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(timer);
}
