import type { AgentObject, BreakerObject, Resource } from '@bulwark/views';
import type { ResiliencePolicy } from '@bulwark/policy';
import type { ApiObject } from '../client/api-client.js';
import { CommandError, EXIT } from '../command-error.js';
import type { Context } from '../context.js';
import { noneFound, placeOf } from '../get/get.js';
import { listObjects } from '../get/lists.js';
import type { Target } from '../targets.js';
import { sectionsText, type Entry } from './sections.js';

export interface DescribeOptions {
  readonly allNamespaces: boolean;
  readonly selector?: string;
}

/** `bulwark describe`: everything about objects, for people. A name that is none is taken as the beginning of names. */
export async function describe(
  targets: readonly Target[],
  options: DescribeOptions,
  context: Context,
): Promise<number> {
  const texts: string[] = [];
  for (const { resource, names } of targets) {
    for (const object of await chosen({ resource, names }, options, context)) {
      texts.push(sectionsText(await entriesOf(resource, object, context), context.paint));
    }
  }
  if (texts.length === 0) context.io.err(noneFound(options, context));
  context.io.out(texts.join('\n\n'));
  return EXIT.ok;
}

async function chosen(
  target: Target,
  options: DescribeOptions,
  context: Context,
): Promise<readonly ApiObject[]> {
  const { resource, names } = target;
  const place = placeOf(resource, options, context);
  if (names.length === 0)
    return (await listObjects(context.api, place, { labelSelector: options.selector })).items;
  const found: ApiObject[] = [];
  for (const name of names) {
    const exact = options.allNamespaces ? undefined : await context.api.find({ ...place, name });
    if (exact !== undefined) {
      found.push(exact);
      continue;
    }
    const { items } = await listObjects(context.api, place, { labelSelector: options.selector });
    const matching = items.filter((item) => item.metadata.name.startsWith(name));
    if (matching.length === 0) throw notFound(resource, name, items);
    found.push(...matching);
  }
  return found;
}

function notFound(resource: Resource, name: string, items: readonly ApiObject[]): CommandError {
  const known = items.map((item) => item.metadata.name).slice(0, 5);
  const hint = known.length === 0 ? 'There are none in this namespace.' : `There are: ${known.join(', ')}`;
  return new CommandError(
    `Error from server (NotFound): ${resource.plural}.bulwark.dev "${name}" not found`,
    { hint },
  );
}

async function entriesOf(resource: Resource, object: ApiObject, context: Context): Promise<readonly Entry[]> {
  switch (resource.plural) {
    case 'breakers':
      return (await import('./breaker.js')).describeBreaker(object as unknown as BreakerObject, context);
    case 'resiliencepolicies':
      return (await import('./policy.js')).describePolicy(object as unknown as ResiliencePolicy, context);
    case 'agents':
      return (await import('./agent.js')).describeAgent(object as unknown as AgentObject, context.io.now());
  }
}
