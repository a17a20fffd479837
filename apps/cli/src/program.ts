import { Command, Option } from 'commander';
import { clientFlags, collect, collectList, withContext, type ClientFlags } from './flags.js';
import type { Io } from './io.js';

/** Takes the exit code of the command that ran. */
export type Done = (exitCode: number) => void;

const DRY_RUN = () =>
  new Option('--dry-run <where>', 'do not write').choices(['none', 'client', 'server']).default('none');

/** The words and flags of every command. What a command does is loaded only when it runs. */
export function buildProgram(io: Io, done: Done): Command {
  const program = new Command('bulwark')
    .description(
      'A control plane for resilience: breakers, retries, deadlines and fallbacks for the whole fleet',
    )
    .usage('COMMAND [flags]')
    .helpCommand('help [command]', 'show help')
    .showSuggestionAfterError()
    .configureHelp({ sortOptions: false });
  program.addHelpText(
    'after',
    '\nExamples:\n  bulwark server\n  bulwark apply -f policies/\n  bulwark get breakers -w\n',
  );
  addApply(program, io, done);
  addGet(program, io, done);
  addDescribe(program, io, done);
  addDiff(program, io, done);
  addDelete(program, io, done);
  addForce(program, io, done);
  addPrograms(program);
  addDemo(program, io, done);
  addVersion(program, io, done);
  return program;
}

interface FileFlags extends ClientFlags {
  readonly filename?: readonly string[];
  readonly recursive?: boolean;
}

function fileFlags(command: Command): Command {
  return command
    .option('-f, --filename <path>', 'file, directory, or - for stdin; may be given several times', collect)
    .option('-R, --recursive', 'directories in directories too');
}

function loadOptions(flags: FileFlags, verb: string) {
  return {
    files: flags.filename ?? [],
    recursive: flags.recursive ?? false,
    givenNamespace: flags.namespace,
    verb,
  };
}

function addApply(program: Command, io: Io, done: Done): void {
  interface Flags extends FileFlags {
    readonly dryRun: 'none' | 'client' | 'server';
  }
  clientFlags(fileFlags(program.command('apply')))
    .description('make policies so as files say; nothing is applied unless all documents are valid')
    .addOption(DRY_RUN())
    .action(async (flags: Flags) => {
      const { loadPolicies } = await import('./apply/load.js');
      const { apply } = await import('./apply/apply.js');
      const policies = await loadPolicies(loadOptions(flags, 'applied'), io);
      done(await withContext(flags, io, (context) => apply(policies, { dryRun: flags.dryRun }, context)));
    });
}

interface GetFlags extends ClientFlags {
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly fieldSelector?: string;
  readonly output: string;
  readonly watch?: boolean;
  readonly watchOnly?: boolean;
  readonly outputWatchEvents?: boolean;
  readonly everyUpdate?: boolean;
  readonly headers: boolean;
  readonly showLabels?: boolean;
  readonly labelColumns?: readonly string[];
  readonly sortBy?: string;
}

function addGet(program: Command, io: Io, done: Done): void {
  clientFlags(
    program
      .command('get')
      .argument('<kind...>', 'kinds (policies,breakers,agents), a kind and names, or kind/name'),
  )
    .description('show objects: policies (rp), breakers (br), agents (ag)')
    .option('-A, --all-namespaces', 'of all namespaces')
    .option('-l, --selector <labels>', 'only with these labels: app=storefront,tier!=test')
    .option('--field-selector <fields>', 'only with these fields: metadata.name=pay')
    .option('-o, --output <format>', 'table, wide, json, yaml, name, jsonpath=TEMPLATE', 'table')
    .option('-w, --watch', 'then show every change')
    .option('--watch-only', 'show changes only')
    .option('--output-watch-events', 'show what happened to each object')
    .option('--every-update', 'with -w: rows also when only rates and ages change')
    .option('--no-headers', 'rows only')
    .option('--show-labels', 'with their labels')
    .option('-L, --label-columns <labels>', 'labels as columns', collectList)
    .option('--sort-by <path>', 'by a field: .status.calls.perSecond')
    .action(async (words: string[], flags: GetFlags) => {
      const { parseTargets } = await import('./targets.js');
      const { parseOutput } = await import('./get/options.js');
      const targets = parseTargets(words);
      const options = {
        ...flags,
        output: parseOutput(flags.output),
        allNamespaces: flags.allNamespaces ?? false,
        watch: flags.watch === true || flags.watchOnly === true,
        watchOnly: flags.watchOnly ?? false,
        watchEvents: flags.outputWatchEvents ?? false,
        everyUpdate: flags.everyUpdate ?? false,
        showLabels: flags.showLabels ?? false,
        labelColumns: flags.labelColumns ?? [],
      };
      const { get } = await import('./get/get.js');
      const { watch } = options.watch ? await import('./get/watch.js') : { watch: get };
      done(await withContext(flags, io, (context) => watch(targets, options, context)));
    });
}

function addDescribe(program: Command, io: Io, done: Done): void {
  interface Flags extends ClientFlags {
    readonly allNamespaces?: boolean;
    readonly selector?: string;
  }
  clientFlags(
    program.command('describe').argument('<kind...>', 'a kind and names (or how they begin), or kind/name'),
  )
    .description('show everything about objects')
    .option('-A, --all-namespaces', 'of all namespaces')
    .option('-l, --selector <labels>', 'only with these labels')
    .action(async (words: string[], flags: Flags) => {
      const { parseTargets } = await import('./targets.js');
      const { describe } = await import('./describe/describe.js');
      const targets = parseTargets(words);
      done(
        await withContext(flags, io, (context) =>
          describe(targets, { ...flags, allNamespaces: flags.allNamespaces ?? false }, context),
        ),
      );
    });
}

function addDiff(program: Command, io: Io, done: Done): void {
  clientFlags(fileFlags(program.command('diff')))
    .description('show what apply would change; exit code 0 = nothing, 1 = something, 2 = error')
    .action(async (flags: FileFlags) => {
      const { EXIT, CommandError } = await import('./command-error.js');
      try {
        const { loadPolicies } = await import('./apply/load.js');
        const { diff } = await import('./diff/diff.js');
        const policies = await loadPolicies(loadOptions(flags, 'compared'), io);
        done(await withContext(flags, io, (context) => diff(policies, context)));
      } catch (error) {
        if (!(error instanceof CommandError) || error.exitCode !== EXIT.failed) throw error;
        throw new CommandError(error.message, {
          exitCode: EXIT.diffFailed,
          cause: error,
          ...(error.hint === undefined ? {} : { hint: error.hint }),
        });
      }
    });
}

function addDelete(program: Command, io: Io, done: Done): void {
  interface Flags extends FileFlags {
    readonly selector?: string;
    readonly all?: boolean;
    readonly yes?: boolean;
    readonly ignoreNotFound?: boolean;
    readonly dryRun: 'none' | 'client' | 'server';
  }
  clientFlags(fileFlags(program.command('delete').argument('[kind...]', 'a kind and names, or kind/name')))
    .description('delete policies: by name, -f, -l or --all')
    .option('-l, --selector <labels>', 'those with these labels')
    .option('--all', 'all of the namespace')
    .option('-y, --yes', 'do not ask')
    .option('--ignore-not-found', 'what is not there is no error')
    .addOption(DRY_RUN())
    .action(async (words: string[], flags: Flags) => {
      const { deleteDocuments, deleteTargets } = await import('./delete/delete.js');
      const { all = false, yes = false, ignoreNotFound = false } = flags;
      const options = { ...flags, all, yes, ignoreNotFound };
      if (flags.filename !== undefined) {
        const { loadPolicies } = await import('./apply/load.js');
        const policies = await loadPolicies(loadOptions(flags, 'deleted'), io);
        done(await withContext(flags, io, (context) => deleteDocuments(policies, options, context)));
        return;
      }
      const { parseTargets } = await import('./targets.js');
      const targets = parseTargets(words);
      done(await withContext(flags, io, (context) => deleteTargets(targets, options, context)));
    });
}

function addForce(program: Command, io: Io, done: Done): void {
  interface Flags extends ClientFlags {
    readonly for: string;
    readonly reason?: string;
  }
  const force = program.command('force').description('overrule the fleet for a bounded time');
  clientFlags(
    force
      .command('breaker')
      .argument('<name>', 'its name, or how it begins when only one does')
      .argument('<state>', 'open, closed, or none: no longer'),
  )
    .description('force one breaker open or closed')
    .option('--for <time>', 'ends by itself after', '10m')
    .option('--reason <text>', 'shown wherever the breaker is')
    .action(async (name: string, state: string, flags: Flags) => {
      const { forceBreaker } = await import('./force.js');
      done(await withContext(flags, io, (context) => forceBreaker(name, { ...flags, state }, context)));
    });
}

/** Shown in the help only: `main` starts them before anything of this is loaded. */
function addPrograms(program: Command): void {
  program.command('server').description('run a replica of the control plane (see: bulwark server --help)');
  program.command('agent').description('run a sidecar (see: bulwark agent --help)');
}

function addDemo(program: Command, io: Io, done: Done): void {
  const demos = program
    .command('demo')
    .description('break and heal the dependencies of the demo (npm start)');
  const add = (verb: 'break' | 'hang' | 'heal' | 'status', description: string) =>
    demos
      .command(verb)
      .description(description)
      .argument(verb === 'status' ? '[name]' : '<name>')
      .addOption(
        new Option('--demo <url>', 'where it listens').env('BULWARK_DEMO').default('http://127.0.0.1:9400'),
      )
      .action(async (name: string | undefined, { demo: url }: { readonly demo: string }) => {
        const { demo } = await import('./demo.js');
        done(await demo(verb, { name: name ?? '', url, io }));
      });
  add('break', 'let it answer 500');
  add('hang', 'let it not answer');
  add('heal', 'let it work again');
  add('status', 'how they are');
}

function addVersion(program: Command, io: Io, done: Done): void {
  program
    .command('version')
    .description("show the version; with --server also the server's")
    .option('--server <url>', 'the control plane')
    .option('-o, --output <format>', 'json or yaml')
    .action(async ({ server, output }: { readonly server?: string; readonly output?: string }) => {
      const { version } = await import('./version.js');
      done(await version({ server, format: output }, io));
    });
}
