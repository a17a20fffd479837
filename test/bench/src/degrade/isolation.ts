import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchContext, Figure } from '../harness.js';
import { failed, latencyMs, percentOf, type Caller, type Ended } from './caller.js';
import type { Dependency } from './dependency.js';
import { breakerLine, policy } from './policy.js';

const CALLERS = 200;
const FRAUD_MAX = 10;
const WAIT_MS = 3_000;
/** Beside fraud: service → bulkhead, kept full by as many callers. */
const BESIDE = { payment: 20, inventory: 30 } as const;
const BESIDE_MS = 100;

export const isolationPolicies = [
  policy(
    'fraud',
    'timeout: { total: 30s }',
    `bulkhead: { maxConcurrent: ${FRAUD_MAX}, maxQueued: ${CALLERS}, maxWait: 3s }`,
  ),
  policy(
    'fraud-breaker',
    'timeout: { attempt: 200ms, total: 30s }',
    `bulkhead: { maxConcurrent: ${FRAUD_MAX}, maxQueued: ${CALLERS}, maxWait: 3s }`,
    breakerLine('60s'),
  ),
  ...Object.entries(BESIDE).map(([name, maxConcurrent]) =>
    policy(
      name,
      'timeout: { total: 5s }',
      `bulkhead: { maxConcurrent: ${maxConcurrent}, maxQueued: 10, maxWait: 1s }`,
    ),
  ),
];

interface Beside {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly errors: number;
}

interface Measures {
  readonly alone: Beside;
  readonly beside: Beside;
  readonly unguardedInFlight: number;
  readonly inFlight: number;
  readonly refused: number;
  readonly lastRefusalMs: number;
  readonly openP99Ms: number;
}

/** A service that hangs, and what its callers and the services beside it see of that. */
export async function isolation(
  context: BenchContext,
  dependency: Dependency,
  caller: Caller,
): Promise<void> {
  const hang = { kind: 'hang' } as const;
  const well = { kind: 'answer', afterMs: BESIDE_MS } as const;
  await dependency.behave({
    fraud: hang,
    'fraud-breaker': hang,
    'fraud-unguarded': hang,
    payment: well,
    inventory: well,
  });
  const rounds: Measures[] = [];
  for (let round = 0; round < context.rounds; round += 1) {
    rounds.push(await oneRound(dependency, caller, context.quick ? 500 : 1_500));
  }
  context.section(
    `${CALLERS} concurrent calls to a fraud service that hangs 30 s, payment ${BESIDE.payment} and inventory ${BESIDE.inventory} beside it`,
  );
  reportAll(context, rounds);
}

async function oneRound(dependency: Dependency, caller: Caller, aloneMs: number): Promise<Measures> {
  const alone = await keepFull(caller, aloneMs);
  // Long enough for every refusal to have come; those still under way then go away.
  const patienceMs = WAIT_MS + 500;
  const fraud = wave(caller, 'fraud', patienceMs);
  const beside = await keepFull(caller, WAIT_MS);
  const { inFlight } = await dependency.log('fraud');
  const ended = await fraud;
  const refused = ended.filter((call) => call.rejected.startsWith('bulkhead'));
  const unguarded = wave(caller, 'fraud-unguarded', 300);
  await sleep(200);
  const unguardedInFlight = (await dependency.log('fraud-unguarded')).inFlight;
  await unguarded;
  await openBreaker(caller);
  return {
    alone,
    beside,
    unguardedInFlight,
    inFlight: Math.max(inFlight, (await dependency.log('fraud')).inFlightMax),
    refused: refused.length,
    lastRefusalMs: latencyMs(refused, 1),
    openP99Ms: latencyMs(await wave(caller, 'fraud-breaker'), 0.99),
  };
}

function wave(caller: Caller, service: string, patienceMs?: number): Promise<Ended[]> {
  return Promise.all(Array.from({ length: CALLERS }, () => caller.get(service, patienceMs)));
}

async function openBreaker(caller: Caller): Promise<void> {
  for (let n = 0; n < 10; n += 1) {
    if ((await caller.get('fraud-breaker')).rejected === 'breaker-open') return;
  }
  throw new Error('the breaker did not open');
}

/** Payment and inventory, each with as many callers as it has places, one call after the other. */
async function keepFull(caller: Caller, forMs: number): Promise<Beside> {
  const calls: Ended[] = [];
  const endMs = performance.now() + forMs;
  const one = async (service: string) => {
    while (performance.now() < endMs) calls.push(await caller.get(service));
  };
  await Promise.all(
    Object.entries(BESIDE).flatMap(([service, places]) => Array.from({ length: places }, () => one(service))),
  );
  return {
    perSecond: calls.length / ((performance.now() - endMs + forMs) / 1_000),
    p50Ms: latencyMs(calls, 0.5),
    p99Ms: latencyMs(calls, 0.99),
    errors: percentOf(calls, failed),
  };
}

function reportAll(context: BenchContext, rounds: readonly Measures[]): void {
  const report = (name: string, unit: string, value: (one: Measures) => number, more: Partial<Figure> = {}) =>
    context.report({ name, unit, rounds: rounds.map(value), ...more });
  const alone = (value: (one: Beside) => number) => ({
    name: 'alone',
    rounds: rounds.map((one) => value(one.alone)),
  });
  report('without a guard: in flight on fraud', '', (one) => one.unguardedInFlight, { reference: '200' });
  report('bulkhead 10: most in flight on fraud', '', (one) => one.inFlight, {
    reference: '10',
    reach: { kind: 'near', figure: FRAUD_MAX, from: FRAUD_MAX, to: FRAUD_MAX },
    exact: true,
  });
  report('bulkhead 10: refused', '', (one) => one.refused, {
    reference: '190',
    reach: { kind: 'near', figure: CALLERS - FRAUD_MAX, from: CALLERS - FRAUD_MAX, to: CALLERS - FRAUD_MAX },
  });
  report('bulkhead 10: last refusal after', 'ms', (one) => one.lastRefusalMs, {
    reference: '3000 ms',
    reach: { kind: 'near', figure: WAIT_MS, from: WAIT_MS - 50, to: WAIT_MS + 250 },
  });
  report('payment and inventory beside it: served', 'requests/s', (one) => one.beside.perSecond, {
    reference: 'full capacity',
    base: alone((one) => one.perSecond),
    reach: { kind: 'at-least', figure: 0.9 },
  });
  report('payment and inventory beside it: errors', '%', (one) => one.beside.errors, {
    reference: '0 %',
    reach: { kind: 'at-most', figure: 0 },
  });
  report('payment and inventory beside it: p50', 'ms', (one) => one.beside.p50Ms, {
    reference: 'as alone',
    base: alone((one) => one.p50Ms),
    reach: { kind: 'at-most', figure: 1.2 },
  });
  report('payment and inventory beside it: p99', 'ms', (one) => one.beside.p99Ms, {
    reference: 'as alone',
    base: alone((one) => one.p99Ms),
    reach: { kind: 'at-most', figure: 2 },
  });
  report(`breaker open in front: p99 of ${CALLERS} at once`, 'ms', (one) => one.openP99Ms, {
    reference: 'about 5 ms',
    reach: { kind: 'at-most', figure: 10 },
  });
}
