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

/** `bulwark force breaker NAME open|closed|none`: a person's word over the fleet's, for a bounded time. */
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
  const { api, io, namespace } = context;
  const body = {
    state: STATES[state],
    ...(state === 'none' ? {} : { for: options.for }),
    reason: options.reason ?? '',
    by: userName(),
  };
  try {
    await api.call({ plural: 'breakers', namespace, name, part: 'force' }, { method: 'PUT', body });
  } catch (error) {
    throw error instanceof ApiError && error.code === 404 ? await withNearNames(error, name, context) : error;
  }
  const done = state === 'none' ? 'no longer forced' : `forced ${state} for ${options.for}`;
  io.out(`breaker.bulwark.dev/${name} ${done}\n`);
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

/** Names end in a hash that nobody types from memory. */
async function withNearNames(
  error: ApiError,
  name: string,
  { api, namespace }: Context,
): Promise<CommandError> {
  const { items } = await listObjects(api, { plural: 'breakers', namespace }, {});
  const near = items.map((item) => item.metadata.name).filter((one) => one.startsWith(name));
  const hint =
    near.length === 0 ? 'See: bulwark get breakers' : `Did you mean ${near.slice(0, 5).join(', ')}?`;
  return new CommandError(error.message, { hint, cause: error });
}
