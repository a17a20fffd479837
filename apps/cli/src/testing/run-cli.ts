import { Readable } from 'node:stream';
import { runCommand } from '../run.js';

export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningCommand {
  readonly ended: Promise<Result>;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** As Ctrl-C does. */
  readonly interrupt: () => void;
  /** As a reader that goes away does. */
  readonly closeOutput: () => void;
}

interface Around {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Both of a terminal. Absent = none. */
  readonly terminal?: boolean;
  /** What the person says to questions. Absent = no. */
  readonly answer?: boolean;
}

/** Starts the command in this process, with streams of its own. */
export function startCli(
  argv: readonly string[],
  { stdin = '', env = {}, terminal = false, answer = false }: Around = {},
): RunningCommand {
  let stdout = '';
  let stderr = '';
  const interruption = new AbortController();
  const closing = new AbortController();
  const code = runCommand(argv, {
    out: (text) => {
      if (!closing.signal.aborted) stdout += text;
    },
    err: (text) => void (stderr += text),
    env,
    terminal: { out: terminal, in: terminal },
    interrupted: interruption.signal,
    outputClosed: closing.signal,
    now: () => Date.parse('2026-03-01T12:00:00Z'),
    ask: (question) => {
      stderr += question;
      return Promise.resolve(answer);
    },
    stdin: () => Readable.from([Buffer.from(stdin)]),
  });
  return {
    ended: code.then((it) => ({ code: it, stdout, stderr })),
    stdout: () => stdout,
    stderr: () => stderr,
    interrupt: () => interruption.abort(),
    closeOutput: () => closing.abort(),
  };
}

export function runCli(argv: readonly string[], around?: Around): Promise<Result> {
  return startCli(argv, around).ended;
}
