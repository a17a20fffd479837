import { objectPath, resourceOfKind } from '@bulwark/views';
import type { ApiObject } from '../client/api-client.js';
import { ConnectionError } from '../client/connection.js';
import { CommandError, EXIT } from '../command-error.js';
import type { Context } from '../context.js';
import { counted } from '../output/counted.js';
import type { LoadedPolicy } from './load.js';
import { tellReach } from './reach.js';
import { LivePolicies } from './live-policies.js';
import { write, type Written } from './write.js';
import { planOf } from './plan.js';

export type DryRun = 'none' | 'client' | 'server';

/** Tried all at once before anything is written. */
const PARALLEL = 8;

/**
 * `bulwark apply`, its documents being valid already: tries all on the server, then writes one after the other. Stops
 * at the first write that fails and tells exactly what was written.
 */
export async function apply(
  policies: readonly LoadedPolicy[],
  options: { readonly dryRun: DryRun },
  context: Context,
): Promise<number> {
  const live = new LivePolicies(context.api);
  if (options.dryRun === 'client') return previewLocally(policies, live, context);
  await live.load(policies);
  const tried = await tryAll(policies, live, context);
  if (options.dryRun === 'server') {
    tried.forEach((result, index) =>
      context.io.out(resultLine(policies[index], result, ' (server dry run)')),
    );
    return EXIT.ok;
  }
  const written: Written[] = [];
  for (const [index, policy] of policies.entries()) {
    try {
      const result = await write(policy, context, { dryRun: false, remember: true, live });
      written.push(result);
      context.io.out(resultLine(policy, result, ''));
    } catch (error) {
      throw interruptedApply(policies, index, error);
    }
  }
  await tellReach(policies, written, context);
  return EXIT.ok;
}

function resultLine(policy: LoadedPolicy | undefined, { result }: Written, note: string): string {
  return `${pathOfPolicy(policy)} ${result}${note}\n`;
}

function pathOfPolicy(policy: LoadedPolicy | undefined): string {
  const resource = resourceOfKind('ResiliencePolicy');
  return resource === undefined || policy === undefined ? '' : objectPath(resource, policy.name);
}

/** Every document's answer, or every refusal in one error. */
async function tryAll(
  policies: readonly LoadedPolicy[],
  live: LivePolicies,
  context: Context,
): Promise<readonly Written[]> {
  const results: Written[] = [];
  const refusals: string[] = [];
  for (let from = 0; from < policies.length; from += PARALLEL) {
    const some = policies.slice(from, from + PARALLEL);
    const settled = await Promise.allSettled(
      some.map((policy) => write(policy, context, { dryRun: true, remember: true, live })),
    );
    settled.forEach((one, index) => {
      if (one.status === 'fulfilled') results.push(one.value);
      else refusals.push(refusalText(some[index], one.reason));
    });
  }
  if (refusals.length > 0) {
    throw new CommandError(
      `${refusals.join('\n')}\nerror: nothing was applied: the server refuses ${counted(refusals.length, 'document')}`,
    );
  }
  return results;
}

/** A server that cannot be asked is one problem, not one for each document. */
function refusalText(policy: LoadedPolicy | undefined, reason: unknown): string {
  if (reason instanceof ConnectionError || !(reason instanceof CommandError) || reason.message === '')
    throw reason;
  const hint = reason.hint === undefined ? '' : `\n${reason.hint}`;
  return `${policy?.place}: ${reason.message}${hint}`;
}

function interruptedApply(policies: readonly LoadedPolicy[], failed: number, error: unknown): unknown {
  if (!(error instanceof CommandError)) return error;
  const names = (some: readonly LoadedPolicy[]) =>
    some.map((one) => `${one.namespace}/${one.name}`).join(', ') || 'none';
  const unsure = error instanceof ConnectionError || error.exitCode === EXIT.interrupted;
  const [policy] = policies.slice(failed);
  const lines = [
    error.message,
    `Applied before: ${names(policies.slice(0, failed))}.`,
    `${unsure ? 'Perhaps applied' : 'Not applied'}: ${policy?.namespace}/${policy?.name} (${policy?.place}).`,
    `Not tried: ${names(policies.slice(failed + 1))}.`,
  ];
  const message = lines.filter((line) => line !== '').join('\n');
  return new CommandError(message, {
    exitCode: error.exitCode,
    hint: error.hint ?? 'Run the same command again: what is applied already stays unchanged.',
    cause: error,
  });
}

/** Without asking for any write; without a server, only what the documents themselves tell. */
async function previewLocally(
  policies: readonly LoadedPolicy[],
  server: LivePolicies,
  context: Context,
): Promise<number> {
  const { io } = context;
  const { warnings } = await import('@bulwark/policy');
  for (const { policy, place } of policies) {
    for (const { path, message } of warnings(policy)) io.err(`Warning: ${place}: ${path}: ${message}\n`);
  }
  let reachable = true;
  for (const policy of policies) {
    const live = reachable ? await liveIfReachable(policy, server) : 'unreachable';
    if (live === 'unreachable') {
      if (reachable)
        io.err(
          `The server ${context.api.connection.url} does not answer; only the documents were checked.\n`,
        );
      reachable = false;
      io.out(`${pathOfPolicy(policy)} valid (dry run)\n`);
      continue;
    }
    const { kind } = planOf(policy, live, { remember: true });
    const result = kind === 'create' ? 'created' : kind === 'patch' ? 'configured' : 'unchanged';
    io.out(`${pathOfPolicy(policy)} ${result} (dry run)\n`);
  }
  return EXIT.ok;
}

async function liveIfReachable(
  policy: LoadedPolicy,
  server: LivePolicies,
): Promise<ApiObject | undefined | 'unreachable'> {
  try {
    return await server.of(policy);
  } catch (error) {
    if (error instanceof ConnectionError) return 'unreachable';
    throw error;
  }
}
