import type { Host } from '@bulwark/resilience';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type BenchContext, interleave, nanosecondsPerCall, type Reach } from '../harness.js';
import { Floor } from './floor.js';
import { adapter, call, everything, guard, REQUEST, succeed, systemHost } from './guards.js';

const KEYS = 10_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Bytes of one breaker key with its window: 10,000 of them, called, less what their names and the guard need. */
export async function bytesPerKey(context: BenchContext): Promise<void> {
  context.section(`${KEYS.toLocaleString('en')} breaker keys in one process`);
  const names = Array.from({ length: KEYS }, (_, n) => `call.shard=${n}`);
  const bytes: number[] = [];
  // Until the end: one that is collected while another is measured would be taken off its size.
  const kept: unknown[] = [];
  for (let round = 0; round < context.rounds; round += 1) {
    let next = 0;
    const keyed = guard(everything({ breaker: { ...everything().breaker!, per: ['call.shard'] } }), {
      keyOf: () => names[next++ % KEYS] ?? '',
    });
    kept.push(keyed);
    await keyed.call(REQUEST, succeed, adapter);
    const before = heapBytes();
    for (let n = 1; n < KEYS; n += 1) await keyed.call(REQUEST, succeed, adapter);
    bytes.push((heapBytes() - before) / (KEYS - 1));
    if ([...keyed.gates()].length !== KEYS) throw new Error('not every key has a breaker');
  }
  context.report({
    name: 'memory per key',
    unit: 'bytes',
    rounds: bytes,
    reach: { kind: 'at-most', figure: 1500 },
    exact: true,
  });
}

/** What a call costs where there are so many keys: always of the same one, and each of another. */
export async function callsOverKeys(context: BenchContext): Promise<void> {
  const names = Array.from({ length: KEYS }, (_, n) => `call.shard=${n}`);
  let next = 0;
  let step = 1;
  const settings = everything({ breaker: { ...everything().breaker!, per: ['call.shard'] } });
  const keyed = guard(settings, { keyOf: () => names[(next += step) % KEYS] ?? '' });
  for (let n = 0; n < KEYS; n += 1) await keyed.call(REQUEST, succeed, adapter);
  const floors = new Map(names.map((name) => [name, new Floor()]));
  const calls = context.quick ? 200 : 100_000;
  const stepping = (by: number, callOnce: () => unknown) => (): Promise<number> => {
    step = by;
    return nanosecondsPerCall(calls, callOnce);
  };
  const rounds = await interleave(
    {
      bare: () => nanosecondsPerCall(calls, () => succeed()),
      floor: stepping(1, () => floors.get(names[(next += step) % KEYS] ?? '')?.execute(succeed)),
      same: stepping(0, call(keyed, succeed)),
      others: stepping(1, call(keyed, succeed)),
    },
    { rounds: context.rounds, warmUps: context.quick ? 0 : 2 },
  );
  const bare = { name: 'bare async call', rounds: rounds.bare };
  const report = (name: string, values: number[], reach?: Reach): void =>
    context.report({ name, unit: 'ns', rounds: values, base: bare, ...(reach && { reach }) });
  report('hand-written, each of another key', rounds.floor);
  report('guarded call, all of one key', rounds.same, { kind: 'at-most', figure: 4 });
  report('guarded call, each of another key', rounds.others);
}

/** A host whose clock runs so fast or slow that a loop of calls is a load of so many a second. */
function hostAt(callsPerSecond: number): Host {
  let nowMs = 0;
  return {
    ...systemHost,
    nowMs: () => nowMs,
    random: () => 0.5,
    after: () => () => undefined,
    ticker: {
      nowMs: () => (nowMs += 1000 / callsPerSecond),
      atNextTick: () => undefined,
    },
  };
}

/** The same call under a load from 100 to 1,000,000 calls a second of the window's time. */
export async function loads(context: BenchContext): Promise<void> {
  context.section('One guarded call, by calls a second in its window');
  const rates = [100, 1000, 10_000, 100_000, 1_000_000];
  const calls = context.quick ? 200 : 50_000;
  const peers = Object.fromEntries(
    rates.map((rate) => {
      const loaded = guard(everything(), { host: hostAt(rate) });
      return [String(rate), () => nanosecondsPerCall(calls, call(loaded, succeed))];
    }),
  );
  const rounds = await interleave(peers, { rounds: context.rounds, warmUps: context.quick ? 0 : 2 });
  const base = { name: '100 calls/s', rounds: rounds['100'] ?? [] };
  for (const rate of rates) {
    const name = `${rate.toLocaleString('en')} calls/s`;
    context.report({
      name,
      unit: 'ns',
      rounds: rounds[String(rate)] ?? [],
      ...(rate !== 100 && { base, reach: { kind: 'at-most', figure: 1.25 } }),
    });
  }
}
