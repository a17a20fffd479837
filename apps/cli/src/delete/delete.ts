import type { Resource } from '@bulwark/views';
import type { LoadedPolicy } from '../apply/load.js';
import { placeOfPolicy } from '../apply/live-policies.js';
import type { ApiObject, Place } from '../client/api-client.js';
import { ApiError } from '../client/status.js';
import { CommandError, EXIT, UsageError } from '../command-error.js';
import type { Context } from '../context.js';
import { listObjects } from '../get/lists.js';
import { counted } from '../output/counted.js';
import { resourceNamed, type Target } from '../targets.js';

export interface DeleteOptions {
  readonly selector?: string;
  readonly all: boolean;
  readonly yes: boolean;
  readonly ignoreNotFound: boolean;
  readonly dryRun: 'none' | 'client' | 'server';
}

type Named = Place & { readonly name: string };

interface Doomed {
  readonly resource: Resource;
  readonly place: Named;
}

/** `bulwark delete KIND NAME…`, `-l`, `--all`. */
export async function deleteTargets(
  targets: readonly Target[],
  options: DeleteOptions,
  context: Context,
): Promise<number> {
  const named = targets.some(({ names }) => names.length > 0);
  const many = options.all || options.selector !== undefined;
  if (named === many) {
    throw new UsageError(
      named ? 'names do not go with --all or -l' : 'say which: names, -l SELECTOR or --all',
      'Example: bulwark delete policy NAME',
    );
  }
  const { namespace } = context;
  const doomed = targets.flatMap(({ resource, names }) =>
    names.map((name): Doomed => ({ resource, place: { plural: resource.plural, namespace, name } })),
  );
  if (many) doomed.push(...(await selected(targets, options, context)));
  if (many && doomed.length === 0) {
    context.io.err(`No resources found in ${namespace} namespace.\n`);
    return EXIT.ok;
  }
  if (many) await confirm(doomed, options, context);
  return deleteAll(doomed, options, context);
}

/** `bulwark delete -f`: the policies that the documents name. */
export function deleteDocuments(
  policies: readonly LoadedPolicy[],
  options: DeleteOptions,
  context: Context,
): Promise<number> {
  const resource = resourceNamed('resiliencepolicy');
  const doomed = policies.map((policy): Doomed => ({ resource, place: placeOfPolicy(policy) }));
  return deleteAll(doomed, options, context);
}

async function selected(
  targets: readonly Target[],
  { selector }: DeleteOptions,
  { api, namespace }: Context,
): Promise<readonly Doomed[]> {
  const found: Doomed[] = [];
  for (const { resource } of targets) {
    const list = { plural: resource.plural, namespace };
    const { items } = await listObjects(api, list, { labelSelector: selector });
    found.push(
      ...items.map((item: ApiObject) => ({ resource, place: { ...list, name: item.metadata.name } })),
    );
  }
  return found;
}

/** Many at once are named and asked about; where nobody can be asked, `--yes` must have been said. */
async function confirm(
  doomed: readonly Doomed[],
  options: DeleteOptions,
  { io, api, namespace }: Context,
): Promise<void> {
  if (options.yes || options.dryRun !== 'none') return;
  const what = counted(doomed.length, 'object');
  if (!io.terminal.in) {
    throw new CommandError(`error: this would delete ${what} in namespace ${namespace}`, {
      hint: 'There is no terminal to ask on: say --yes to go on.',
    });
  }
  const agents = (await listObjects(api, { plural: 'agents', namespace }, {})).items.length;
  const shown = doomed.slice(0, 10).map(({ resource, place }) => `  ${resource.singular}/${place.name}\n`);
  const more = doomed.length > shown.length ? `  and ${doomed.length - shown.length} more\n` : '';
  io.err(`${shown.join('')}${more}`);
  const lost =
    agents === 0 ? '' : ` ${counted(agents, 'agent there loses', 'agents there lose')} their guard at once.`;
  if (!(await io.ask(`Delete ${what} in namespace ${namespace}?${lost} [y/N] `))) {
    throw new CommandError('Nothing was deleted.');
  }
}

async function deleteAll(
  doomed: readonly Doomed[],
  options: DeleteOptions,
  { io, api }: Context,
): Promise<number> {
  let failed = false;
  const note =
    options.dryRun === 'none' ? '' : options.dryRun === 'client' ? ' (dry run)' : ' (server dry run)';
  const server = options.dryRun === 'server';
  for (const { resource, place } of doomed) {
    try {
      if (options.dryRun === 'client') await api.get(place);
      else {
        // In the query and in the body: servers look at the one or the other.
        const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...(server ? { dryRun: ['All'] } : {}) };
        await api.call(place, { method: 'DELETE', body, query: { dryRun: server ? 'All' : undefined } });
      }
      io.out(`${resource.singular}.bulwark.dev "${place.name}" deleted${note}\n`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404 && options.ignoreNotFound) continue;
      failed = true;
      io.err(`${error.message}\n`);
    }
  }
  return failed ? EXIT.failed : EXIT.ok;
}
