import type { BenchContext } from '../harness.js';
import { degraded, failed, latencyMs, percentOf, type Caller } from './caller.js';
import type { Dependency } from './dependency.js';
import { openLoop } from './open-loop.js';
import { policy, staticLine } from './policy.js';

const PER_SECOND = 100;
const NTH = 20;
const SLOW_MS = 600;

export const slowCallPolicies = [
  policy('short', 'timeout: { attempt: 50ms, total: 2s }', 'fallback:', staticLine),
  policy('long', 'timeout: { attempt: 800ms, total: 2s }', 'fallback:', staticLine),
];

interface Asked {
  readonly degraded: number;
  readonly p99Ms: number;
}

/** Every 20th call is slow: a timeout below it degrades exactly that share, one above it none and keeps the tail. */
export async function slowCalls(
  context: BenchContext,
  dependency: Dependency,
  caller: Caller,
): Promise<void> {
  const behaviour = { kind: 'slow-calls', nth: NTH, slowMs: SLOW_MS } as const;
  await dependency.behave({ short: behaviour, long: behaviour });
  const forMs = context.quick ? 1_000 : 4_000;
  const short: Measures[] = [];
  const long: Measures[] = [];
  for (let round = 0; round < context.rounds; round += 1) {
    const [one, other] = await Promise.all([
      measure(caller, 'short', forMs, 0),
      measure(caller, 'long', forMs, 5),
    ]);
    short.push(one);
    long.push(other);
  }
  context.section(
    `Every ${NTH}th call takes ${SLOW_MS} ms, no breaker, ${PER_SECOND} requests/s (both at once)`,
  );
  reportRow(context, 'attempt timeout 50 ms', short, { degraded: 100 / NTH, p99Ms: 53 });
  reportRow(context, 'attempt timeout 800 ms', long, { degraded: 0, p99Ms: 608 });
}

interface Measures {
  readonly errors: number;
  readonly degraded: number;
  readonly p99Ms: number;
}

async function measure(caller: Caller, service: string, forMs: number, offsetMs: number): Promise<Measures> {
  const begun = await openLoop({ perSecond: PER_SECOND, forMs, offsetMs, call: () => caller.get(service) });
  const calls = await Promise.all(begun);
  return {
    errors: percentOf(calls, failed),
    degraded: percentOf(calls, degraded),
    p99Ms: latencyMs(calls, 0.99),
  };
}

function reportRow(context: BenchContext, title: string, rounds: readonly Measures[], asked: Asked): void {
  const share = asked.degraded;
  context.report({
    name: `${title}: errors`,
    unit: '%',
    rounds: rounds.map((one) => one.errors),
    reference: '0 %',
    reach: { kind: 'at-most', figure: 0 },
    exact: true,
  });
  context.report({
    name: `${title}: degraded`,
    unit: '%',
    rounds: rounds.map((one) => one.degraded),
    reference: `${share} %`,
    // A moment's stall of the machine may turn an ordinary call into one over 50 ms.
    reach: { kind: 'near', figure: share, from: share, to: share === 0 ? 0 : share + 3 },
  });
  context.report({
    name: `${title}: p99`,
    unit: 'ms',
    rounds: rounds.map((one) => one.p99Ms),
    reference: `${asked.p99Ms} ms`,
    reach: { kind: 'near', figure: asked.p99Ms, from: 0.9 * asked.p99Ms, to: 1.5 * asked.p99Ms },
  });
}
