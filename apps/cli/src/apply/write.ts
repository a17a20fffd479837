import type { ApiObject, Place } from '../client/api-client.js';
import { delay } from '../client/delay.js';
import { ApiError } from '../client/status.js';
import { CommandError } from '../command-error.js';
import type { Context } from '../context.js';
import type { LoadedPolicy } from './load.js';
import { lastApplied, planOf } from './plan.js';

export interface Written {
  readonly result: 'created' | 'configured' | 'unchanged';
  /** As it is (or, in a dry run, would be) stored. */
  readonly object: ApiObject;
}

/** Reads again and computes anew this often when another write came between. */
const CONFLICT_RETRIES = 5;
const CONFLICT_WAIT_MS = 50;

interface WriteMode {
  readonly dryRun: boolean;
  readonly remember: boolean;
}

export function write(policy: LoadedPolicy, context: Context): Promise<Written> {
  return writeWith(policy, context, { dryRun: false, remember: true });
}

/** As `write`, and the server stores nothing. `remember: false` leaves the memory of what was applied alone. */
export function dryRun(policy: LoadedPolicy, context: Context, remember = true): Promise<Written> {
  return writeWith(policy, context, { dryRun: true, remember });
}

export function placeOfPolicy({ namespace, name }: LoadedPolicy): Place & { readonly name: string } {
  return { plural: 'resiliencepolicies', namespace, name };
}

export function livePolicy(place: Place, context: Context): Promise<ApiObject | undefined> {
  return context.api.find(place);
}

async function writeWith(policy: LoadedPolicy, context: Context, mode: WriteMode): Promise<Written> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await writeOnce(policy, context, mode);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409) throw error;
      if (tries === CONFLICT_RETRIES) {
        throw new CommandError(
          `${error.message}\n(tried ${tries + 1} times: someone else writes it all the time)`,
          { cause: error },
        );
      }
      // Two that collided must not collide again by waiting alike.
      await delay(CONFLICT_WAIT_MS * (tries + 1) * (0.5 + Math.random()), context.io.interrupted);
    }
  }
}

async function writeOnce(
  policy: LoadedPolicy,
  { api, io }: Context,
  { dryRun, remember }: WriteMode,
): Promise<Written> {
  const place = placeOfPolicy(policy);
  const live = await api.find(place);
  const plan = planOf(policy, live, { remember });
  const query = {
    fieldManager: 'bulwark-client-side-apply',
    fieldValidation: 'Strict',
    dryRun: dryRun ? 'All' : undefined,
  };
  if (live !== undefined && remember && dryRun && lastApplied(live) === undefined) {
    io.err(
      `Warning: ${policy.namespace}/${policy.name} was not made by apply: fields that it has and ${policy.place} leaves out stay as they are this time\n`,
    );
  }
  switch (plan.kind) {
    case 'unchanged':
      return { result: 'unchanged', object: plan.object };
    case 'create': {
      const list = { plural: place.plural, namespace: place.namespace };
      const object = (await api.call(list, { method: 'POST', query, body: plan.body })) as ApiObject;
      return { result: 'created', object };
    }
    case 'patch': {
      const contentType = 'application/merge-patch+json';
      const object = (await api.call(place, {
        method: 'PATCH',
        query,
        body: plan.patch,
        contentType,
      })) as ApiObject;
      return { result: 'configured', object };
    }
  }
}
