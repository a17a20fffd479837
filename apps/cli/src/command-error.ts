export const EXIT = {
  ok: 0,
  /** An error, or "no". For `diff`: there are differences. */
  failed: 1,
  diffFailed: 2,
  usage: 64,
  interrupted: 130,
} as const;

/** Ends the command: `message` goes to stderr as it stands, then the hint on a line of its own. */
export class CommandError extends Error {
  readonly exitCode: number;
  readonly hint: string | undefined;

  constructor(
    message: string,
    options: { readonly exitCode?: number; readonly hint?: string; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'CommandError';
    this.exitCode = options.exitCode ?? EXIT.failed;
    this.hint = options.hint;
  }
}

/** Words that cannot be understood, as against a request that cannot be carried out. */
export class UsageError extends CommandError {
  constructor(message: string, hint?: string) {
    super(`error: ${message}`, { exitCode: EXIT.usage, ...(hint === undefined ? {} : { hint }) });
    this.name = 'UsageError';
  }
}

/** Ctrl-C. Nothing is printed for it but what the command itself has to say. */
export class Interrupted extends CommandError {
  constructor() {
    super('', { exitCode: EXIT.interrupted });
    this.name = 'Interrupted';
  }
}
