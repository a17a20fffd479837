import { CommandError } from '../command-error.js';
import type { Context } from '../context.js';
import { listObjects } from '../get/lists.js';
import { counted } from '../output/counted.js';
import type { LoadedPolicy } from './load.js';
import type { Written } from './write.js';

/**
 * While there are no rollouts, a change goes to every agent it is for at once, and whoever makes it should know how
 * many these are. A policy that asks for just that (`rollout: {strategy: immediate}`) needs no telling.
 */
export async function tellReach(
  policies: readonly LoadedPolicy[],
  written: readonly Written[],
  context: Context,
): Promise<void> {
  for (const [index, { policy, namespace, name }] of policies.entries()) {
    const result = written[index]?.result;
    if (result === undefined || result === 'unchanged' || policy.spec.rollout?.strategy === 'immediate')
      continue;
    const count = await agentsOf(namespace, policy.spec.callers?.matchLabels ?? {}, context);
    if (count === 0) continue;
    const who =
      count === undefined
        ? 'all its agents'
        : count === 1
          ? 'its one agent'
          : `all ${counted(count, 'agent')}`;
    context.io.err(
      `Warning: ${namespace}/${name} is sent to ${who} at once: there are no gradual rollouts yet\n`,
    );
  }
}

/** Undefined = not known; the writes are made, so nothing here may fail the command. */
async function agentsOf(
  namespace: string,
  labels: Readonly<Record<string, string>>,
  context: Context,
): Promise<number | undefined> {
  const labelSelector = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
  try {
    const query = labelSelector === '' ? {} : { labelSelector };
    const { items } = await listObjects(context.api, { plural: 'agents', namespace }, query);
    return items.filter((item) => (item['status'] as { phase?: string } | undefined)?.phase !== 'Lost')
      .length;
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}
