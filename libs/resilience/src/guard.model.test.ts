import {
  breakerSettings,
  checkModelAsync,
  commandsOf,
  guardSettings,
  type GuardCall,
  GuardWorld,
  type GuardWorldAnswer,
  type GuardWorldRun,
  retrySettings,
  WORLD_KEYS,
} from '@bulwark/testing';
import fc from 'fast-check';
import { test } from 'vitest';
import type { GuardSettings } from './index.js';

/** What a policy is made of; small, so that a counterexample can be read. */
const shape = fc.record({
  mode: fc.oneof(
    { weight: 11, arbitrary: fc.constant('enforce' as const) },
    { weight: 1, arbitrary: fc.constant('shadow' as const) },
  ),
  totalMs: fc.constantFrom(300, 300, 300, Infinity),
  attemptMs: fc.constantFrom(undefined, 100),
  retries: fc.constantFrom('none', 'unbounded', 'budget'),
  trip: fc.constantFrom(0, 2, 2, 2, 2, 2, 3),
  steps: fc.constantFrom<number[]>([], [0.5]),
  bulkhead: fc.constantFrom(
    undefined,
    ...[1, 2, 3].map((maxConcurrent) => ({ maxConcurrent, maxQueued: 3, maxWaitMs: 60 })),
    { maxConcurrent: 2, maxQueued: 0, maxWaitMs: 0 },
    { maxConcurrent: 4, maxQueued: 3, maxWaitMs: 60, adaptive: 'gradient' as const },
  ),
  lastGood: fc.boolean(),
  simplified: fc.boolean(),
  fixed: fc.boolean(),
});
type Shape = typeof shape extends fc.Arbitrary<infer S> ? S : never;

function settingsOf(from: Shape, scale: number): GuardSettings {
  const { mode, totalMs, attemptMs, retries, trip, steps, bulkhead, lastGood, simplified, fixed } = from;
  return guardSettings({
    mode,
    timeout: { totalMs: totalMs * scale, ...(attemptMs !== undefined && { attemptMs: attemptMs * scale }) },
    ...(retries !== 'none' && {
      retry: retrySettings({
        backoff: { baseMs: 20 * scale, maxMs: 60 * scale, jitter: 'full' },
        ...(retries === 'budget' && { budget: { ratio: 0.3, minPerSecond: 1, windowMs: 1000 } }),
      }),
    }),
    ...(trip > 0 && {
      breaker: breakerSettings({
        per: ['operation'],
        trip: { consecutiveFailures: trip },
        ruleHash: String(trip),
        cooldown: { initialMs: 100 * scale, maxMs: 200 * scale, factor: 2 },
        probe: { concurrent: 1, successesToClose: 1, timeoutMs: 80 * scale },
        recovery: { steps, stepForMs: 100 * scale },
      }),
    }),
    ...(bulkhead !== undefined && {
      bulkhead: { ...bulkhead, maxWaitMs: bulkhead.maxWaitMs * scale },
    }),
    fallbacks: [
      ...(lastGood
        ? [{ kind: 'last-good' as const, maxAgeMs: 400 * scale, refreshJitter: 0.5, varyBy: [] }]
        : []),
      ...(simplified ? [{ kind: 'simplified' as const, whenQueued: 1, operation: 'GET /simple' }] : []),
      ...(fixed ? [{ kind: 'static' as const, status: 200, body: '', contentType: '' }] : []),
    ],
  });
}

function scaled(plan: GuardCall, scale: number): GuardCall {
  return plan.deadlineMs === undefined ? plan : { ...plan, deadlineMs: plan.deadlineMs * scale };
}

const plan: fc.Arbitrary<GuardCall> = fc.record({
  operation: fc.constantFrom(...WORLD_KEYS),
  method: fc.constantFrom('GET', 'GET', 'POST'),
  deadlineMs: fc.constantFrom(undefined, undefined, 0, 30, 150),
  callerAttempt: fc.constantFrom(1, 1, 1, 2),
  cached: fc.boolean(),
  leaving: fc.constantFrom(...(['never', 'never', 'never', 'may', 'may', 'may', 'before'] as const)),
  atOnce: fc.constantFrom<GuardCall['atOnce']>('waits', 'waits', 'waits', 'waits', 'answers', 'throws'),
  wantsValue: fc.boolean(),
});
const pick = fc.nat(30);
const answer = fc.constantFrom<GuardWorldAnswer>(
  'ok',
  'ok',
  'no',
  'unavailable',
  'unavailable',
  'reset',
  'nobody-knows',
);
const command = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ do: fc.constant('call' as const), plan, times: fc.constantFrom(1, 1, 2, 4) }),
  },
  { weight: 10, arbitrary: fc.record({ do: fc.constant('answer' as const), pick, answer }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('abort' as const), pick }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(0, 1, 15, 40, 65, 100, 100, 250),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('update' as const), shape }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('verdict' as const),
      state: fc.constantFrom('open' as const, 'half-open' as const, 'recovering' as const, 'closed' as const),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'drill' as const }) },
);

/** Most runs without a verdict: what must hold of local probes is looked at in those only. */
const commands = fc
  .tuple(commandsOf(command, 24), fc.constantFrom(true, false, false))
  .map(([steps, fleet]) => (fleet ? steps : steps.filter((step) => step.do !== 'verdict')));

const run: fc.Arbitrary<GuardWorldRun> = fc.record({
  seed: fc.nat(1000),
  throwing: fc.boolean(),
  ticks: fc.boolean(),
});

test('S5: whatever is called, answered, aborted, timed out, updated or judged: limits, order and counts hold, nothing leaks', async () => {
  await checkModelAsync(
    fc.asyncProperty(shape, commands, run, async (initial, steps, how) => {
      const scale = how.ticks ? 10 : 1;
      const world = new GuardWorld(settingsOf(initial, scale), how);
      for (const step of steps) {
        if (step.do === 'call') {
          for (let time = 0; time < step.times; time += 1) world.call(scaled(step.plan, scale));
        } else if (step.do === 'answer') world.answer(step.pick, step.answer);
        else if (step.do === 'abort') world.abort(step.pick);
        else if (step.do === 'update') world.update(settingsOf(step.shape, scale));
        else if (step.do === 'verdict') world.verdict(step.state);
        else if (step.do === 'drill') world.drill(50 * scale);
        await world.host.advance(step.do === 'wait' ? step.ms * scale : 0);
        world.check();
      }
      await world.end();
    }),
  );
}, 120_000);
