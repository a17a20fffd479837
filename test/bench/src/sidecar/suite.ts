import { eventually, temporaryDirectory } from '@bulwark/testing';
import { interleave, type BenchContext, type Peers } from '../harness.js';
import { load } from './load.js';
import { processorSeconds } from './processor-time.js';
import {
  startBareProxy,
  startHaproxy,
  startNginx,
  startSidecar,
  startUpstream,
  type Proxy,
} from './proxies.js';
import { SIZES, type Path } from './sizes.js';

export const name = 'sidecar';

const SIDECAR = 'the sidecar';
const BARE = 'a bare node:http proxy';

interface Case {
  readonly path: Path;
  readonly connections: number;
}

const CASES: readonly Case[] = [
  { path: '/100B', connections: 1 },
  { path: '/100B', connections: 64 },
  { path: '/2KB', connections: 64 },
  { path: '/1MB', connections: 4 },
];
const ROUND_MS = 1_000;
/** So that what runs often has been compiled: a sidecar lives long. */
const WARM_UP_MS = 8_000;

interface Measurement {
  readonly perSecond: number;
  /** Of the proxy's process. */
  readonly processorMicroseconds: number;
  readonly medianMs: number;
}

/**
 * Answers through the sidecar with a policy in force, beside other proxies before the same upstream. On a machine that
 * does other work too, processor time says more than requests a second.
 */
export async function run(context: BenchContext): Promise<void> {
  using directory = temporaryDirectory('bench-sidecar');
  await using stack = new AsyncDisposableStack();
  const keep = (proxy: Proxy): Proxy => {
    stack.use(proxy.process);
    return proxy;
  };
  const upstream = keep(await startUpstream());
  const proxies: Record<string, Proxy> = {
    [SIDECAR]: keep(await startSidecar(upstream.port, directory.path)),
    [BARE]: keep(await startBareProxy(upstream.port)),
  };
  // A short run looks for no programs that the machine may not have.
  for (const [peer, start] of context.quick
    ? []
    : Object.entries({ nginx: startNginx, haproxy: startHaproxy })) {
    try {
      proxies[peer] = keep(await start(upstream.port, directory.path));
    } catch (error) {
      console.error(`Without ${peer}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  for (const [peer, proxy] of Object.entries(proxies)) {
    await eventually(() => measure(proxy, { path: '/100B', connections: 1 }, 1).then(() => true), {
      what: `an answer through ${peer}`,
    });
    await measure(proxy, { path: '/2KB', connections: 64 }, context.quick ? 50 : WARM_UP_MS);
  }
  for (const one of CASES) await compare(context, proxies, one);
}

async function compare(context: BenchContext, proxies: Record<string, Proxy>, one: Case): Promise<void> {
  const { path, connections } = one;
  const title = `answers of ${path.slice(1)}, ${connections} connection${connections === 1 ? '' : 's'}`;
  context.section(title);
  const peers: Peers<string, Measurement> = Object.fromEntries(
    Object.entries(proxies).map(([peer, proxy]) => [
      peer,
      () => measure(proxy, one, context.quick ? 100 : ROUND_MS),
    ]),
  );
  const rounds = await interleave(peers, { rounds: context.rounds, warmUps: context.quick ? 0 : 1 });
  const figures = [
    ['processor time a request', 'µs', 'processorMicroseconds'],
    ['throughput', 'requests/s', 'perSecond'],
    ['latency', 'ms', 'medianMs'],
  ] as const;
  for (const [what, unit, field] of figures) {
    const base = (rounds[BARE] ?? []).map((round) => round[field]);
    for (const [peer, all] of Object.entries(rounds)) {
      const values = all.map((round) => round[field]);
      // Only Linux tells of processor time.
      if (values.some(Number.isNaN) || base.some(Number.isNaN)) continue;
      context.report({
        name: `${title}: ${what} through ${peer}`,
        unit,
        rounds: values,
        ...(peer !== BARE && { base: { name: BARE, rounds: base } }),
      });
    }
  }
}

async function measure(
  { port, process }: Proxy,
  { path, connections }: Case,
  forMs: number,
): Promise<Measurement> {
  const before = processorSeconds(process.pid);
  const { requests, seconds, medianMs } = await load({ port, path, bytes: SIZES[path], connections, forMs });
  const used = processorSeconds(process.pid) - before;
  return { perSecond: requests / seconds, processorMicroseconds: (used / requests) * 1e6, medianMs };
}
