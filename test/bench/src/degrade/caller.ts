import { connect, type Bulwark } from '@bulwark/agent';
import { temporaryDirectory } from '@bulwark/testing';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { percentile } from '../harness.js';
import type { Dependency } from './dependency.js';
import type { Body } from './messages.js';

/** How one call ended, for the one who made it. */
export interface Ended {
  readonly tookMs: number;
  readonly end: 'fresh' | 'degraded' | 'error';
  /** "last-good", "static", "simplified"; "" = not degraded. */
  readonly mode: string;
  /** Why it was degraded, "timeout", "breaker-open", "refreshing" …; "" = it was not. */
  readonly reason: string;
  /** Of the data; undefined = it has none (a fixed answer, an error). */
  readonly ageMs: number | undefined;
  /** Why a guard rejected it; "" = it did not. */
  readonly rejected: string;
}

/** The caller: this process, guarded by the SDK under the policies of a bootstrap file. */
export class Caller implements AsyncDisposable {
  private constructor(
    private readonly bulwark: Bulwark,
    private readonly dependency: Dependency,
  ) {}

  static async start(dependency: Dependency, policies: readonly string[]): Promise<Caller> {
    const directory = temporaryDirectory('bench-degrade');
    try {
      const bootstrap = join(directory.path, 'policies.yaml');
      writeFileSync(bootstrap, policies.join('---\n'));
      const bulwark = await connect({ namespace: 'shop', service: 'storefront', bootstrap });
      return new Caller(bulwark, dependency);
    } finally {
      directory.remove();
    }
  }

  /** A GET of the service's full answer. `patienceMs`: the caller's own, after which it goes away. Never rejects. */
  async get(service: string, patienceMs?: number): Promise<Ended> {
    const begunMs = performance.now();
    let answer: Omit<Ended, 'tookMs'> = NO_ANSWER;
    try {
      const response = await this.bulwark.fetch(this.dependency.url(service, 'full'), {
        bulwark: { service },
        ...(patienceMs !== undefined && { signal: AbortSignal.timeout(patienceMs) }),
      });
      answer = await read(response);
    } catch {
      // An error it is.
    }
    return { tookMs: performance.now() - begunMs, ...answer };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.bulwark.close();
  }
}

const NO_ANSWER = { end: 'error', mode: '', reason: '', ageMs: undefined, rejected: '' } as const;

async function read(response: Response): Promise<Omit<Ended, 'tookMs'>> {
  const { madeUnixMs } = (await response.json()) as Partial<Body>;
  const rejected = response.headers.get('bulwark-rejected') ?? '';
  if (response.status !== 200) return { ...NO_ANSWER, rejected };
  const mark = response.headers.get('bulwark-degraded') ?? '';
  const mode = /^[a-z-]*/.exec(mark)?.[0] ?? '';
  const reason = /;reason="([a-z-]*)"/.exec(mark)?.[1] ?? '';
  const ageMs = madeUnixMs === undefined ? undefined : Date.now() - madeUnixMs;
  return { end: mode === '' ? 'fresh' : 'degraded', mode, reason, ageMs, rejected };
}

/** Percent of the calls that ended like this; NaN without calls. */
export function percentOf(calls: readonly Ended[], like: (call: Ended) => boolean): number {
  return (100 * calls.filter(like).length) / calls.length;
}

export function latencyMs(calls: readonly Ended[], q: number): number {
  return percentile(
    calls.map((call) => call.tookMs),
    q,
  );
}

export const failed = (call: Ended): boolean => call.end === 'error';
export const degraded = (call: Ended): boolean => call.end === 'degraded';
