import { interleave, type BenchContext, type Figure } from '../harness.js';
import { failed, latencyMs, percentOf, type Caller, type Ended } from './caller.js';
import type { Dependency } from './dependency.js';
import { openLoop } from './open-loop.js';
import { policy } from './policy.js';

const PER_SECOND = 300;
/** One worker: 153 full answers a second. */
const FULL_MS = 6.5;
/** With 66 % simplified answers the worker is just busy at 300 a second, as in the reference. */
const SIMPLIFIED_MS = 1.7;
/** One being answered and one on its way, so that the worker is never idle between two. */
const CONCURRENT = 2;
/** The bounded queue without the switch: 56 full answers are 364 ms. */
const QUEUE = 54;

export const overloadPolicies = [
  policy(
    'switching',
    'timeout: { total: 5s }',
    `bulkhead: { maxConcurrent: ${CONCURRENT}, maxQueued: ${QUEUE}, maxWait: 4s }`,
    'fallback:',
    '  - simplified: { whenQueued: 10, operation: "GET /switching/simplified" }',
  ),
  policy(
    'full-only',
    'timeout: { total: 5s }',
    `bulkhead: { maxConcurrent: ${CONCURRENT}, maxQueued: ${QUEUE}, maxWait: 4s }`,
  ),
];

interface Measures {
  readonly servedPerSecond: number;
  readonly errors: number;
  readonly simplified: number;
  readonly p99Ms: number;
}

/** More requests than the service can answer in full: with the switch to its simplified answer, and without. */
export async function overload(context: BenchContext, dependency: Dependency, caller: Caller): Promise<void> {
  const forMs = context.quick ? 1_000 : 4_000;
  const behaviour = { kind: 'worker', fullMs: FULL_MS, simplifiedMs: SIMPLIFIED_MS } as const;
  await dependency.behave({ switching: behaviour, 'full-only': behaviour });
  const { switching, fullOnly } = await interleave(
    {
      switching: () => measure(caller, 'switching', forMs),
      fullOnly: () => measure(caller, 'full-only', forMs),
    },
    { rounds: context.rounds, warmUps: 0 },
  );
  context.section(
    `Overload: ${PER_SECOND} requests/s on a service that can answer ${Math.floor(1_000 / FULL_MS)}/s in full`,
  );
  reportBoth(context, switching, fullOnly);
}

async function measure(caller: Caller, service: string, forMs: number): Promise<Measures> {
  const begun = await openLoop({ perSecond: PER_SECOND, forMs, call: () => caller.get(service) });
  const calls = await Promise.all(begun);
  const served = calls.filter((call) => !failed(call));
  return {
    servedPerSecond: served.length / (forMs / 1_000),
    errors: percentOf(calls, failed),
    simplified: percentOf(served, (call: Ended) => call.mode === 'simplified'),
    p99Ms: latencyMs(served, 0.99),
  };
}

function reportBoth(
  context: BenchContext,
  switching: readonly Measures[],
  fullOnly: readonly Measures[],
): void {
  const with_ = 'simplified when 10 are queued';
  const without = 'full answers only, bounded queue';
  const of = (rounds: readonly Measures[], key: keyof Measures) => rounds.map((one) => one[key]);
  const report = (name: string, unit: string, figure: Pick<Figure, 'rounds'> & Partial<Figure>) =>
    context.report({ name, unit, ...figure });
  report(`${with_}: served`, 'requests/s', {
    rounds: of(switching, 'servedPerSecond'),
    reference: '300/s',
    reach: { kind: 'at-least', figure: 0.99 * PER_SECOND },
  });
  report(`${with_}: errors`, '%', {
    rounds: of(switching, 'errors'),
    reference: '0 %',
    reach: { kind: 'at-most', figure: 0 },
  });
  report(`${with_}: simplified`, '%', {
    rounds: of(switching, 'simplified'),
    reference: '66 %',
    reach: { kind: 'near', figure: 66, from: 50, to: 80 },
  });
  report(`${without}: served`, 'requests/s', { rounds: of(fullOnly, 'servedPerSecond'), reference: '153/s' });
  report(`${without}: errors`, '%', { rounds: of(fullOnly, 'errors') });
  report(`${without}: p99 of the served`, 'ms', { rounds: of(fullOnly, 'p99Ms'), reference: '371 ms' });
  report(`${with_}: p99`, 'ms', {
    rounds: of(switching, 'p99Ms'),
    reference: '63 ms',
    base: { name: 'without', rounds: of(fullOnly, 'p99Ms') },
    reach: { kind: 'at-most', figure: 0.75 },
  });
}
