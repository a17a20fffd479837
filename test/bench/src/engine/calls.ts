import { type BenchContext, interleave, nanosecondsPerCall, type Reach } from '../harness.js';
import { Floor } from './floor.js';
import {
  adapter,
  breaker,
  call,
  countingBreaker,
  everything,
  fail,
  guard,
  NO_TIMEOUT,
  openGuard,
  REQUEST,
  succeed,
} from './guards.js';
import { cockatielCounting, cockatielFour, cockatielPair, opossum } from './peers.js';

type Timed = readonly [calls: number, call: () => unknown];

const most = (figure: number): Reach => ({ kind: 'at-most', figure });
const swallow = (): undefined => undefined;

/** Measures them interleaved; `calls` is shortened in a quick run. */
async function time<Name extends string>(
  context: BenchContext,
  peers: Readonly<Record<Name, Timed>>,
): Promise<Record<Name, number[]>> {
  const measuring = Object.entries<Timed>(peers).map(([name, [calls, callOnce]]) => [
    name,
    () => nanosecondsPerCall(context.quick ? 200 : calls, callOnce),
  ]);
  const timed = Object.fromEntries(measuring) as Record<Name, () => Promise<number>>;
  return interleave(timed, { rounds: context.rounds, warmUps: context.quick ? 0 : 3 });
}

/** One call that succeeds. */
export async function succeedingCalls(context: BenchContext): Promise<void> {
  context.section('One call that succeeds');
  const floor = new Floor();
  const pair = guard({ timeout: NO_TIMEOUT, breaker: breaker() });
  const all = guard(everything());
  const theirs = cockatielPair(10_000);
  const theirFour = cockatielFour();
  const other = opossum(succeed, 10_000, true);
  const many = 100_000;
  const peers = {
    'bare async call': [many, () => succeed()],
    'hand-written breaker + bulkhead': [many, () => floor.execute(succeed)],
    'breaker + bulkhead': [many, call(pair, succeed)],
    'guarded call': [many, call(all, succeed)],
    'guarded call, as a result': [many, () => all.call(REQUEST, succeed, adapter)],
    'cockatiel breaker + bulkhead': [many, () => theirs.execute(succeed)],
    'cockatiel wrap of four': [4000, () => theirFour.execute(succeed)],
    'opossum breaker + bulkhead': [many, () => other.fire()],
  } as const satisfies Record<string, Timed>;
  const rounds = await time(context, peers);
  const bare = { name: 'bare async call', rounds: rounds['bare async call'] };
  const reaches: Partial<Record<keyof typeof peers, Reach>> = {
    'breaker + bulkhead': most(2.3),
    'guarded call': most(4),
  };
  for (const name of Object.keys(peers) as (keyof typeof peers)[]) {
    const reach = reaches[name];
    context.report({
      name,
      unit: 'ns',
      rounds: rounds[name],
      ...(name !== bare.name && { base: bare }),
      ...(reach && { reach }),
    });
  }
  const hand = { name: 'hand-written', rounds: rounds['hand-written breaker + bulkhead'] };
  const beside = { unit: 'ns', base: hand };
  context.report({
    ...beside,
    name: 'breaker + bulkhead, again',
    rounds: rounds['breaker + bulkhead'],
    reach: most(1.15),
  });
  context.report({ ...beside, name: 'guarded call, again', rounds: rounds['guarded call'], reach: most(2) });
  other.shutdown();
}

/** One call that fails, in windows of several lengths that hold few and many calls. */
export async function failingCalls(context: BenchContext): Promise<void> {
  context.section('One call that fails, by length of the window and calls in it');
  for (const windowMs of [1000, 10_000, 60_000]) {
    for (const held of [100, context.quick ? 200 : 200_000]) {
      const ours = guard({ timeout: NO_TIMEOUT, breaker: countingBreaker(windowMs) });
      const theirs = cockatielCounting(windowMs);
      const other = opossum(fail, windowMs, false);
      for (let n = 0; n < held; n += 1) {
        await ours.call(REQUEST, succeed, adapter);
        await theirs.execute(succeed);
      }
      const rounds = await time(context, {
        ours: [10_000, () => ours.run(REQUEST, fail, adapter).catch(swallow)],
        cockatiel: [10_000, () => theirs.execute(fail).catch(swallow)],
        opossum: [1000, () => other.fire().catch(swallow)],
      });
      const where = `${windowMs / 1000} s, ${held} calls`;
      const base = { name: `cockatiel, ${where}`, rounds: rounds.cockatiel };
      context.report({
        name: `failing call, ${where}`,
        unit: 'ns',
        rounds: rounds.ours,
        base,
        reach: most(2),
      });
      context.report({ name: base.name, unit: 'ns', rounds: rounds.cockatiel });
      context.report({ name: `opossum, ${where}`, unit: 'ns', rounds: rounds.opossum, base });
      other.shutdown();
    }
  }
}

/** One call that an open breaker refuses. */
export async function rejections(context: BenchContext): Promise<void> {
  context.section('One call that an open breaker refuses');
  const opened = await openGuard();
  const floor = new Floor();
  const theirs = cockatielPair(10_000);
  for (let n = 0; n < 100; n += 1) {
    await floor.execute(fail).catch(swallow);
    await theirs.execute(fail).catch(swallow);
  }
  const rounds = await time(context, {
    floor: [50_000, () => floor.execute(succeed).catch(swallow)],
    value: [50_000, () => opened.run(REQUEST, succeed, adapter).catch(swallow)],
    result: [50_000, () => opened.call(REQUEST, succeed, adapter)],
    cockatiel: [20_000, () => theirs.execute(succeed).catch(swallow)],
  });
  const base = { name: 'hand-written rejection', rounds: rounds.floor };
  context.report({ name: base.name, unit: 'ns', rounds: rounds.floor });
  context.report({ name: 'rejection', unit: 'ns', rounds: rounds.result, base, reach: most(1.5) });
  context.report({ name: 'rejection, as an error', unit: 'ns', rounds: rounds.value, base });
  context.report({ name: 'cockatiel rejection', unit: 'ns', rounds: rounds.cockatiel, base });
}
