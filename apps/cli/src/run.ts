import { CommanderError, type Command } from 'commander';
import { CommandError, EXIT } from './command-error.js';
import type { Io } from './io.js';
import { buildProgram } from './program.js';

/**
 * Runs one command of the client (not `server`, not `agent`) and answers its exit code. What goes wrong is told on
 * stderr; only a defect of this program is thrown.
 */
export async function runCommand(argv: readonly string[], io: Io): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = buildProgram(io, (code) => (exitCode = code));
  for (const command of everyCommand(program)) {
    command.exitOverride().configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (text, write) => write(text),
    });
  }
  try {
    if (argv.length === 0) {
      program.outputHelp({ error: true });
      return EXIT.usage;
    }
    await program.parseAsync(argv, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return wrongUsage(error, program, { argv, io });
    if (!(error instanceof CommandError)) throw error;
    if (error.message !== '') io.err(`${error.message}\n`);
    if (error.hint !== undefined) io.err(`${error.hint}\n`);
    return error.exitCode;
  }
}

function everyCommand(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

/** The parser has told what is wrong; this tells where to look. Asking for help is no error. */
function wrongUsage(
  error: CommanderError,
  program: Command,
  { argv, io }: { readonly argv: readonly string[]; readonly io: Io },
): number {
  if (error.exitCode === 0) return EXIT.ok;
  if (error.code !== 'commander.help') io.err(`Try: bulwark ${wordsOf(program, argv)}--help\n`);
  return EXIT.usage;
}

/** "force breaker ": the command that was meant, as far as its words are known. */
function wordsOf(command: Command, [word, ...rest]: readonly string[]): string {
  const known = command.commands.find((one) => one.name() === word);
  return known === undefined ? '' : `${known.name()} ${wordsOf(known, rest)}`;
}
