import { spawn, type ChildProcess } from 'node:child_process';
import { eventually } from './eventually.js';

export interface ProcessOptions {
  /** A path or a name on the PATH. */
  readonly command: string;
  readonly args?: readonly string[];
  readonly cwd?: string;
  /** Added to this process's environment; `undefined` takes a name away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The start is awaited until a line of stdout or stderr matches. Absent: not awaited. */
  readonly readyLine?: string | RegExp;
  /** Milliseconds for `readyLine`; default 20,000. */
  readonly readyWithinMs?: number;
  /** Bytes of output kept, the newest; default 1 MiB. */
  readonly outputMax?: number;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RunningProcess extends AsyncDisposable {
  readonly pid: number;
  /** Resolves when it has ended and its output is complete. */
  readonly exited: Promise<Exit>;
  /** Whether it still runs (also when paused). */
  running(): boolean;
  /** What it has written so far, stdout and stderr as they came. */
  output(): string;
  stdout(): string;
  stderr(): string;
  /** Waits until a line matches; looks at what was written before, too. Throws with the output when it ends first. */
  waitForLine(pattern: string | RegExp, options?: { readonly withinMs?: number }): Promise<string>;
  write(text: string): void;
  /** Ends its standard input. */
  endInput(): void;
  signal(signal: NodeJS.Signals): void;
  /** SIGSTOP: it stands still, its sockets stay open. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** SIGKILL, and waits for the end. */
  kill(): Promise<Exit>;
  /** SIGTERM, and SIGKILL when it has not ended within `withinMs` (default 5,000). Idempotent. */
  stop(options?: { readonly withinMs?: number }): Promise<Exit>;
}

const alive = new Set<ChildProcess>();
// Nothing outlives the test process, whatever a failing test forgot.
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** Starts a process and waits until it is ready. It is killed when the test process exits. */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
  const child = spawn(options.command, [...(options.args ?? [])], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => reject(new Error(`Could not start ${options.command}: ${error.message}`)));
  });
  const running = watchOver(child, options);
  if (options.readyLine !== undefined) {
    try {
      await running.waitForLine(options.readyLine, { withinMs: options.readyWithinMs ?? 20_000 });
    } catch (error) {
      await running.kill();
      throw error;
    }
  }
  return running;
}

function watchOver(child: ChildProcess, options: ProcessOptions): RunningProcess {
  const { command, outputMax = 1024 * 1024 } = options;
  const all = collector(outputMax);
  const out = collector(outputMax);
  const errors = collector(outputMax);
  let exit: Exit | undefined;
  alive.add(child);
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    all.add(text);
    out.add(text);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    all.add(text);
    errors.add(text);
  });
  // A child that ended early makes writes to it fail; `exited` tells.
  child.stdin?.on('error', () => undefined);
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => {
      alive.delete(child);
      exit = { code, signal };
      resolve(exit);
    });
  });
  const signal = (name: NodeJS.Signals) => {
    if (exit === undefined) child.kill(name);
  };
  const kill = () => {
    signal('SIGKILL');
    return exited;
  };
  const stop = async ({ withinMs = 5000 } = {}) => {
    signal('SIGTERM');
    signal('SIGCONT');
    const timer = setTimeout(() => signal('SIGKILL'), withinMs);
    const end = await exited;
    clearTimeout(timer);
    return end;
  };
  return {
    pid: child.pid ?? 0,
    exited,
    running: () => exit === undefined,
    output: all.text,
    stdout: out.text,
    stderr: errors.text,
    waitForLine: (pattern, { withinMs = 5000 } = {}) =>
      lineOf({ command, all, pattern, withinMs, exit: () => exit }),
    write: (text) => void child.stdin?.write(text),
    endInput: () => void child.stdin?.end(),
    signal,
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    kill,
    stop,
    [Symbol.asyncDispose]: async () => void (await stop()),
  };
}

interface Collector {
  readonly add: (text: string) => void;
  readonly text: () => string;
}

function collector(max: number): Collector {
  let kept = '';
  return {
    add: (text) => {
      kept += text;
      if (kept.length > 2 * max) kept = kept.slice(-max);
    },
    text: () => kept.slice(-max),
  };
}

interface LineSearch {
  readonly command: string;
  readonly all: Collector;
  readonly pattern: string | RegExp;
  readonly withinMs: number;
  readonly exit: () => Exit | undefined;
}

async function lineOf({ command, all, pattern, withinMs, exit }: LineSearch): Promise<string> {
  const matches = (line: string) =>
    typeof pattern === 'string' ? line.includes(pattern) : line.search(pattern) >= 0;
  const find = () => all.text().split('\n').find(matches);
  const found = await eventually(() => find() ?? (exit() === undefined ? false : ''), {
    withinMs,
    what: `${command} to write ${String(pattern)}`,
  }).catch((error: Error) => {
    throw new Error(`${error.message}; it wrote:\n${all.text()}`, { cause: error });
  });
  if (found !== '') return found;
  const end = exit();
  const how = end?.signal ?? `code ${end?.code}`;
  throw new Error(`${command} ended (${how}) before writing ${String(pattern)}; it wrote:\n${all.text()}`);
}
