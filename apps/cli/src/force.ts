import { userInfo } from 'node:os';
import { CommandError, EXIT, UsageError } from './command-error.js';
import { ApiError } from './client/status.js';
import type { Context } from './context.js';
import { listObjects } from './get/lists.js';

export interface ForceOptions {
  readonly state: string;
  /** "10m": it ends by itself after that. */
  readonly for: string;
  readonly reason?: string;
}

/** As typed, and as the API writes them. */
const STATES = { open: 'Open', closed: 'Closed', none: 'None' } as const;

/**
 * `bulwark force breaker NAME open|closed|none`: a person's word over the fleet's, for a bounded time. A name that is
 * none stands for the one breaker whose name begins so.
 */
export async function forceBreaker(name: string, options: ForceOptions, context: Context): Promise<number> {
  const state = stateNamed(options.state);
  if (state === undefined) {
    throw new UsageError(
      `a breaker cannot be forced "${options.state}"`,
      'States: open, closed, none (none ends it)',
    );
  }
  if (state !== 'none' && (options.reason ?? '').trim() === '') {
    throw new UsageError('say why: --reason TEXT', 'Whoever looks at the breaker meanwhile needs to know.');
  }
  const body = {
    state: STATES[state],
    ...(state === 'none' ? {} : { for: options.for }),
    reason: options.reason ?? '',
    by: userName(),
  };
  const forced = await forceNamed(name, body, context);
  const done = state === 'none' ? 'no longer forced' : `forced ${state} for ${options.for}`;
  context.io.out(`breaker.bulwark.dev/${forced} ${done}\n`);
  return EXIT.ok;
}

function stateNamed(word: string): keyof typeof STATES | undefined {
  const lower = word.toLowerCase();
  return lower === 'open' || lower === 'closed' || lower === 'none' ? lower : undefined;
}

/** Who is asked when the breaker's state surprises someone; until people log in, the name on this machine. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
}

/** Answers the whole name: it ends in a hash that nobody types from memory. */
async function forceNamed(name: string, body: object, { api, namespace }: Context): Promise<string> {
  const force = (whole: string) =>
    api.call({ plural: 'breakers', namespace, name: whole, part: 'force' }, { method: 'PUT', body });
  try {
    await force(name);
    return name;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
    const { items } = await listObjects(api, { plural: 'breakers', namespace }, {});
    const near = nearNames(
      items.map((item) => item.metadata.name),
      name,
    );
    const [only] = near;
    if (only === undefined || near.length > 1) throw withNearNames(error, near);
    await force(only);
    return only;
  }
}

/** Those of the policy of this name; without any, those that begin so. */
function nearNames(names: readonly string[], name: string): readonly string[] {
  const ofPolicy = names.filter((one) => one.startsWith(`${name}.`));
  return ofPolicy.length > 0 ? ofPolicy : names.filter((one) => one.startsWith(name) && one !== name);
}

function withNearNames(error: ApiError, near: readonly string[]): CommandError {
  const hint =
    near.length === 0 ? 'See: bulwark get breakers' : `Did you mean ${near.slice(0, 5).join(', ')}?`;
  return new CommandError(error.message, { hint, cause: error });
}
