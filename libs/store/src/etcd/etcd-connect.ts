import { setTimeout as sleep } from 'node:timers/promises';
import { StoreError } from '../store-error.js';
import type { EtcdMembers } from './members.js';

const retryMs = 100;

/** The endpoints as they are used. Throws "invalid" for what is no http(s) URL of a host and a port. */
export function checkEndpoints(endpoints: readonly string[]): readonly string[] {
  if (endpoints.length === 0)
    throw new StoreError('invalid', 'etcd needs at least one endpoint, http://HOST:PORT.');
  const schemes = new Set(endpoints.map(schemeOf));
  if (schemes.size > 1)
    throw new StoreError('invalid', 'The endpoints of etcd must be all http or all https.');
  return endpoints.map((endpoint) => endpoint.replace(/\/$/, ''));
}

function schemeOf(endpoint: string): string {
  const match = /^(https?):\/\/([^/?#\s]+):(\d+)\/?$/.exec(endpoint);
  if (match?.[1] !== undefined && Number(match[3]) <= 65_535) return match[1];
  throw new StoreError(
    'invalid',
    `"${endpoint}" is no endpoint of etcd: write http://HOST:PORT (or https://…).`,
  );
}

/** Waits for etcd's first answer: at the start of a whole system it may come up a little later than its users. */
export async function connected(
  members: EtcdMembers,
  endpoints: readonly string[],
  withinMs: number,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const leftMs = deadline - performance.now();
    try {
      await members.revision(Math.max(1, leftMs));
      return;
    } catch (error) {
      if (performance.now() + retryMs >= deadline) throw unreachable(endpoints, withinMs, error);
    }
    await sleep(retryMs);
  }
}

function unreachable(endpoints: readonly string[], withinMs: number, cause: unknown): StoreError {
  const where = endpoints.join(', ');
  const last = cause instanceof Error ? cause.message : String(cause);
  const advice = `Check that etcd runs there, that host, port and http/https are right, and that no firewall is between: etcdctl --endpoints=${where} endpoint health`;
  return new StoreError(
    'unavailable',
    `etcd at ${where} did not answer within ${withinMs} ms (${last}). ${advice}`,
    {
      cause,
    },
  );
}
