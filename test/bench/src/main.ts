import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { measured, type BenchContext, type Figure, type Measured } from './harness.js';
import { suites } from './suites.js';
import { jsonLine, table } from './table.js';

const USAGE = 64;
const ROUNDS = 7;
const QUICK_ROUNDS = 1;

interface Arguments {
  readonly suite: string;
  readonly rounds: number;
  readonly json: boolean;
  readonly quick: boolean;
}

function usage(problem: string): string {
  return [
    problem,
    'npm run bench -- SUITE [--json] [--rounds N] [--quick]',
    ...Object.entries(suites).map(([name, { about }]) => `  ${name.padEnd(11)} ${about}`),
    '  --json      one object a line instead of the table',
    `  --rounds N  rounds behind each median, from 1 (default ${ROUNDS})`,
    '  --quick     a short run that judges no times: whether everything still runs',
    'Exit code 1 when a figure that is asked for was missed.',
  ].join('\n');
}

/** The arguments, or what is wrong with them. */
function parse(): Arguments | string {
  const flags = {
    json: { type: 'boolean' },
    quick: { type: 'boolean' },
    rounds: { type: 'string' },
  } as const;
  let parsed;
  try {
    parsed = parseArgs({ options: flags, allowPositionals: true });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const { values, positionals } = parsed;
  const [suite, ...others] = positionals;
  if (suite === undefined) return 'Which suite?';
  if (others.length > 0) return `One suite at a time, not also ${others.join(' ')}`;
  if (!Object.hasOwn(suites, suite)) return `There is no suite "${suite}"`;
  const quick = values.quick ?? false;
  const rounds = Number(values.rounds ?? (quick ? QUICK_ROUNDS : ROUNDS));
  if (!Number.isSafeInteger(rounds) || rounds < 1) return '--rounds needs a whole number from 1';
  return { suite, rounds, quick, json: values.json ?? false };
}

/** Prints each figure at once with `--json`, else each section's table when the section ends. */
class Report implements BenchContext {
  readonly rounds: number;
  readonly quick: boolean;
  readonly missed: string[] = [];
  readonly #arguments: Arguments;
  #title = '';
  #lines: Measured[] = [];

  constructor(args: Arguments) {
    this.#arguments = args;
    this.rounds = args.rounds;
    this.quick = args.quick;
  }

  readonly report = (figure: Figure): void => {
    const line = measured(this.#arguments.suite, figure, this.quick);
    if (!line.ok) this.missed.push(line.name);
    if (this.#arguments.json) console.log(jsonLine(line));
    else this.#lines.push(line);
  };

  readonly section = (title: string): void => {
    this.end();
    this.#title = title;
  };

  end(): void {
    if (this.#lines.length > 0) console.log(`${table({ title: this.#title, lines: this.#lines })}\n`);
    this.#lines = [];
  }
}

async function main(): Promise<number> {
  const args = parse();
  if (typeof args === 'string') {
    console.error(usage(args));
    return USAGE;
  }
  const { run } = await suites[args.suite]!.load();
  // Whoever reads may stop reading: `… | head`.
  process.stdout.on('error', () => process.exit(1));
  if (!args.json) console.error(`${args.suite}: ${args.rounds} rounds; each table is shown when it is done`);
  const report = new Report(args);
  await run(report);
  report.end();
  if (!args.json) {
    const { arch, platform, version } = process;
    console.log(`Measured on Node ${version}, ${availableParallelism()} CPUs, ${platform} ${arch}.`);
  }
  if (report.missed.length > 0) console.error(`Missed: ${report.missed.join(' · ')}`);
  return report.missed.length === 0 ? 0 : 1;
}

// By way of an exit, so that the programs under measurement end too; also when who started this is gone.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));
process.on('disconnect', () => process.exit(130));
// Listened to, but nothing to stay for.
process.channel?.unref();

process.exitCode = await main();
