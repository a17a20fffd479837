import { CommandError } from '../command-error.js';
import type { Context } from '../context.js';
import { listObjects } from '../get/lists.js';
import { groupBy } from './group-by.js';
import type { LoadedPolicy } from './load.js';
import type { Written } from './write.js';

const SHOWN_NAMES = 3;

/**
 * While there are no rollouts, a change goes to every agent it is for at once, and whoever makes it should know how
 * many these are. A policy that asks for just that (`rollout: {strategy: immediate}`) needs no telling.
 */
export async function tellReach(
  policies: readonly LoadedPolicy[],
  written: readonly Written[],
  context: Context,
): Promise<void> {
  const changed = policies.filter(({ policy }, index) => {
    const result = written[index]?.result;
    return result !== undefined && result !== 'unchanged' && policy.spec.rollout?.strategy !== 'immediate';
  });
  for (const some of groupBy(changed, (one) => `${one.namespace} ${callersOf(one)}`).values()) {
    const [first] = some;
    const count = first === undefined ? 0 : await agentsOf(first, context);
    if (count === 0) continue;
    const who = count === undefined ? 'all their agents' : count === 1 ? 'one agent' : `all ${count} agents`;
    const verb = some.length === 1 ? 'is' : 'are';
    context.io.err(
      `Warning: ${namesOf(some)} ${verb} sent to ${who} at once: there are no gradual rollouts yet\n`,
    );
  }
}

function namesOf(some: readonly LoadedPolicy[]): string {
  const names = some.slice(0, SHOWN_NAMES).map((one) => `${one.namespace}/${one.name}`);
  const more = some.length - names.length;
  return names.join(', ') + (more === 0 ? '' : ` and ${more} more`);
}

/** A label selector; "" = every agent of the namespace. */
function callersOf({ policy }: LoadedPolicy): string {
  const labels = Object.entries(policy.spec.callers?.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return labels.map(([key, value]) => `${key}=${value}`).join(',');
}

/** Undefined = not known; the writes are made, so nothing here may fail the command. */
async function agentsOf(policy: LoadedPolicy, context: Context): Promise<number | undefined> {
  const labelSelector = callersOf(policy);
  try {
    const query = labelSelector === '' ? {} : { labelSelector };
    const place = { plural: 'agents', namespace: policy.namespace } as const;
    const { items } = await listObjects(context.api, place, query);
    return items.filter((item) => (item['status'] as { phase?: string } | undefined)?.phase !== 'Lost')
      .length;
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}
