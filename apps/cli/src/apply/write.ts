import type { ApiObject } from '../client/api-client.js';
import { delay } from '../client/delay.js';
import { ApiError } from '../client/status.js';
import { CommandError } from '../command-error.js';
import type { Context } from '../context.js';
import { placeOfPolicy, type LivePolicies } from './live-policies.js';
import type { LoadedPolicy } from './load.js';
import { lastApplied, planOf } from './plan.js';

export interface Written {
  readonly result: 'created' | 'configured' | 'unchanged';
  /** As it is (or, in a dry run, would be) stored. */
  readonly object: ApiObject;
}

export interface WriteMode {
  /** The server checks all and stores nothing. */
  readonly dryRun: boolean;
  /** Whether what is applied is remembered in the object, for the next apply. */
  readonly remember: boolean;
  /** What the write is computed from. */
  readonly live: LivePolicies;
}

/** Reads again and computes anew this often when another write came between. */
const CONFLICT_RETRIES = 5;
const CONFLICT_WAIT_MS = 50;

/** Makes one policy so as its document says; sends nothing when it is so already. */
export async function write(policy: LoadedPolicy, context: Context, mode: WriteMode): Promise<Written> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await writeOnce(policy, context, mode);
    } catch (error) {
      if (!(error instanceof ApiError) || !isOvertaken(error)) throw error;
      if (tries === CONFLICT_RETRIES) {
        const often = `(tried ${tries + 1} times: someone else writes it all the time)`;
        throw new CommandError(`${error.message}\n${often}`, { cause: error });
      }
      mode.live.forget(policy);
      // Two that collided must not collide again by waiting alike.
      await delay(CONFLICT_WAIT_MS * (tries + 1) * (0.5 + Math.random()), context.io.interrupted);
    }
  }
}

/** Changed, made or taken away since it was looked at. */
function isOvertaken({ code }: ApiError): boolean {
  return code === 409 || code === 404;
}

async function writeOnce(policy: LoadedPolicy, context: Context, mode: WriteMode): Promise<Written> {
  const { api } = context;
  const place = placeOfPolicy(policy);
  const live = await mode.live.of(policy);
  const plan = planOf(policy, live, { remember: mode.remember });
  const query = {
    fieldManager: 'bulwark-client-side-apply',
    fieldValidation: 'Strict',
    dryRun: mode.dryRun ? 'All' : undefined,
  };
  if (mode.dryRun && mode.remember) warnOfForeign(policy, live, context);
  switch (plan.kind) {
    case 'unchanged':
      return { result: 'unchanged', object: plan.object };
    case 'create': {
      const list = { plural: place.plural, namespace: place.namespace };
      const object = (await api.call(list, { method: 'POST', query, body: plan.body })) as ApiObject;
      return { result: 'created', object };
    }
    case 'patch': {
      const call = {
        method: 'PATCH',
        query,
        body: plan.patch,
        contentType: 'application/merge-patch+json',
      } as const;
      return { result: 'configured', object: (await api.call(place, call)) as ApiObject };
    }
  }
}

/** Without a memory of what was applied, nobody can tell a field that was left out from one that others added. */
function warnOfForeign(policy: LoadedPolicy, live: ApiObject | undefined, { io }: Context): void {
  if (live === undefined || lastApplied(live) !== undefined) return;
  const { namespace, name, place } = policy;
  io.err(
    `Warning: ${namespace}/${name} was not made by apply: fields that it has and ${place} leaves out stay as they are this time\n`,
  );
}
