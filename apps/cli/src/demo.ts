import { Connection } from './client/connection.js';
import { text } from './client/api-client.js';
import { CommandError, EXIT } from './command-error.js';
import type { Io } from './io.js';

export const DEMO_URL = 'http://127.0.0.1:9400';
const ANSWER_MS = 5_000;

/** What the demo's dependency can be told, and how. */
const REQUESTS = {
  break: { method: 'POST', path: (name: string) => `/break/${encodeURIComponent(name)}` },
  hang: { method: 'POST', path: (name: string) => `/break/${encodeURIComponent(name)}?mode=hang` },
  heal: { method: 'POST', path: (name: string) => `/heal/${encodeURIComponent(name)}` },
  status: { method: 'GET', path: () => '/status' },
} as const;

interface ServiceHealth {
  readonly service: string;
  readonly health: string;
  readonly calls?: number;
}

/** `bulwark demo break|heal|status`: speaks to the dependency that `npm start` runs. */
export async function demo(
  verb: keyof typeof REQUESTS,
  { name, url, io }: { readonly name: string; readonly url: string; readonly io: Io },
): Promise<number> {
  const connection = new Connection(url);
  try {
    const { method, path } = REQUESTS[verb];
    const exchange = { method, path: path(name), headers: {}, timeoutMs: ANSWER_MS, signal: io.interrupted };
    const response = await connection.open(exchange).catch((error: unknown) => {
      throw notRunning(error, url);
    });
    const body = await text(response, (error) => connection.failure(error));
    const answer = parse(body, url) as Partial<ServiceHealth> & {
      readonly services?: readonly ServiceHealth[];
      readonly error?: string;
    };
    if (response.statusCode !== 200)
      throw new CommandError(`error: ${answer.error ?? `the demo answered ${response.statusCode}`}`);
    const services = answer.services?.filter((one) => name === '' || one.service === name) ?? [answer];
    if (services.length === 0) throw new CommandError(`error: no service "${name}" in the demo`);
    for (const { service, health, calls } of services) {
      io.out(`${service} is ${health}${calls === undefined ? '' : `, ${calls} calls so far`}\n`);
    }
    return EXIT.ok;
  } finally {
    connection.close();
  }
}

function parse(body: string, url: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch (error) {
    throw new CommandError(`error: what answers at ${url} is not the demo`, { cause: error });
  }
}

function notRunning(error: unknown, url: string): unknown {
  if (!(error instanceof CommandError) || error.message === '') return error;
  return new CommandError(`error: the demo does not answer at ${url}`, {
    hint: 'Start it with: npm start. Another address: --demo URL, or BULWARK_DEMO.',
    cause: error,
  });
}
