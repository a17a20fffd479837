import {
  DocumentError,
  formatProblems,
  placeText,
  readPolicies,
  type ResiliencePolicy,
} from '@bulwark/policy';
import { CommandError } from '../command-error.js';
import type { Io } from '../io.js';
import { counted } from '../output/counted.js';
import { readSources, type SourceOptions } from './read-sources.js';

/** One valid policy out of a file, with the namespace it goes to. */
export interface LoadedPolicy {
  readonly name: string;
  readonly namespace: string;
  /** As validated: without nulls. */
  readonly policy: ResiliencePolicy;
  /** As written: a null asks for the field to go. */
  readonly written: Readonly<Record<string, unknown>>;
  /** "shop.yaml:14", for messages. */
  readonly place: string;
}

export interface LoadOptions extends SourceOptions {
  /** As given with -n. */
  readonly givenNamespace: string | undefined;
  /** What did not happen when there are problems: "applied". */
  readonly verb: string;
}

/** All policies of all files, or none: every problem of every document is told before the error is thrown. */
export async function loadPolicies(options: LoadOptions, io: Io): Promise<readonly LoadedPolicy[]> {
  const sources = await readSources(options, io);
  const namespace = options.givenNamespace ?? 'default';
  try {
    const read = await readPolicies(sources, { namespace });
    const loaded = read.map(({ policy, document }) => ({
      name: policy.metadata.name,
      namespace: policy.metadata.namespace ?? namespace,
      policy,
      written: document.value as Record<string, unknown>,
      place: placeText(document.at),
    }));
    refuseOtherNamespaces(loaded, options);
    return loaded;
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    const { problems } = error;
    const places = counted(new Set(problems.map((one) => one.at?.source)).size, 'file');
    throw new CommandError(
      `${formatProblems(problems)}\nerror: nothing was ${options.verb}: ${counted(problems.length, 'problem')} in ${places}`,
      { cause: error },
    );
  }
}

function refuseOtherNamespaces(loaded: readonly LoadedPolicy[], { givenNamespace, verb }: LoadOptions): void {
  if (givenNamespace === undefined) return;
  const others = loaded.filter((one) => one.namespace !== givenNamespace);
  if (others.length === 0) return;
  const lines = others.map(
    (one) =>
      `${one.place}: metadata.namespace: "${one.namespace}" is not the namespace given with -n ("${givenNamespace}")`,
  );
  throw new CommandError(`${lines.join('\n')}\nerror: nothing was ${verb}`, {
    hint: 'Leave -n out: each document then goes to the namespace it names.',
  });
}
