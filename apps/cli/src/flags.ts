import { Option, type Command } from 'commander';
import { UsageError } from './command-error.js';
import type { Context } from './context.js';
import type { Io } from './io.js';
import type { ColourMode } from './output/colour.js';

export const DEFAULT_SERVER = 'http://127.0.0.1:9443';

/** Flags of every command that asks the server. */
export interface ClientFlags {
  readonly server: string;
  readonly namespace?: string;
  readonly color: ColourMode;
  /** "30s"; absent = that. */
  readonly requestTimeout?: string;
}

const LONGEST_TIMEOUT_MS = 24 * 60 * 60 * 1_000;

export function clientFlags(command: Command): Command {
  return command
    .addOption(
      new Option('--server <url>', 'the control plane').env('BULWARK_SERVER').default(DEFAULT_SERVER),
    )
    .option('-n, --namespace <name>', 'namespace (default: "default")')
    .option('--request-timeout <time>', 'longest wait for an answer of the server (default: "30s")')
    .addOption(new Option('--color <when>', 'colour').choices(['auto', 'always', 'never']).default('auto'));
}

/** Runs `work` with what it needs, and closes the connections after it. */
export async function withContext(
  flags: ClientFlags,
  io: Io,
  work: (context: Context) => Promise<number>,
): Promise<number> {
  const { ApiClient } = await import('./client/api-client.js');
  const { paintFor } = await import('./output/colour.js');
  const { namespace } = flags;
  if (namespace !== undefined && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)) {
    throw new UsageError(
      `"${namespace}" is no name of a namespace`,
      'Lower-case letters, digits and "-", at most 63.',
    );
  }
  const timeoutMs = await requestTimeoutMs(flags.requestTimeout);
  const api = new ApiClient(flags.server, io, timeoutMs === undefined ? {} : { timeoutMs });
  try {
    return await work({
      io,
      api,
      paint: paintFor(flags.color, io),
      givenNamespace: namespace,
      namespace: namespace ?? 'default',
    });
  } finally {
    api.close();
  }
}

async function requestTimeoutMs(text: string | undefined): Promise<number | undefined> {
  if (text === undefined) return undefined;
  const { parseDuration } = await import('@bulwark/policy');
  const ms = parseDuration(text);
  if (ms !== undefined && ms <= LONGEST_TIMEOUT_MS) return ms;
  throw new UsageError(
    `--request-timeout "${text}" is not a time to wait`,
    'From 1ms to 24h, in ms, s, m or h: --request-timeout 30s. There is no waiting without end.',
  );
}

/** For flags that may be given several times. */
export function collect(value: string, former: readonly string[] = []): readonly string[] {
  return [...former, value];
}

/** For flags that may be given several times or with commas. */
export function collectList(value: string, former: readonly string[] = []): readonly string[] {
  return [...former, ...value.split(',').filter((one) => one !== '')];
}
