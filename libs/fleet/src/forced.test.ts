import { describe, expect, test } from 'vitest';
import type { Forced } from './contract.js';
import {
  demand,
  endProbe,
  passCooldown,
  settings,
  stepCounts,
  trip,
  tripToProbe,
  World,
} from './decider.fixture.js';

const forced = (state: Forced['state'], remainingMs = 600_000): Forced => ({
  state,
  remainingMs,
  by: 'ada',
  reason: 'INC-7',
});

describe('what a person forced', () => {
  test('C095: stays for its time whatever agents report, shown beside the computed state', () => {
    const world = new World();
    world.add(4);
    world.reportAll();
    world.force(forced('open'));
    expect(world.verdict).toMatchObject({ state: 'closed', forced: forced('open'), version: { epoch: 1 } });
    for (let second = 0; second < 300; second += 1) {
      for (const agent of world.agents) world.report(agent.succeed(5));
      world.advance(1_000);
    }
    expect(world.of('write')).toHaveLength(1);
    expect(world.verdict?.forced).toMatchObject({ state: 'open', by: 'ada', reason: 'INC-7' });
    expect(world.verdict?.message).toBe('forced open by ada: INC-7');
  });

  test('forced closed, nothing trips; what failed meanwhile does not count afterwards', () => {
    const world = new World();
    world.add(4);
    world.reportAll();
    world.force(forced('closed'));
    trip(world);
    expect(world.verdict).toMatchObject({ state: 'closed' });
    world.force(undefined);
    expect(world.verdict).toMatchObject({ state: 'closed', forced: undefined, reason: 'released' });
    world.advance(100);
    expect(world.state).toBe('closed');
    trip(world);
    expect(world.state).toBe('open');
  });

  test('renewals say how much of its life is left; it ends by itself', () => {
    const world = new World();
    world.add(2);
    world.reportAll();
    world.force(forced('open', 25_000));
    world.advance(20_000);
    expect(world.of('push').map(({ verdict }) => verdict.forced?.remainingMs)).toEqual([
      25_000, 15_000, 5_000,
    ]);
    world.advance(5_000);
    expect(world.verdict).toMatchObject({ forced: undefined, version: { epoch: 2 } });
  });

  test('an open breaker goes on where it was: its cooldown, its probe, its step under a new version', () => {
    const world = new World(settings({ recovery: { steps: [0.1], stepForMs: 2_000 } }));
    world.add(4);
    trip(world);
    world.force(forced('closed'));
    world.advance(7_000);
    expect(world.verdict).toMatchObject({ state: 'open', forced: { state: 'closed' } });
    demand(world);
    world.force(undefined);
    expect(world.state).toBe('half-open');
    endProbe(world, 'success');
    const { epoch } = world.verdict!.version;
    world.force(forced('open', 1_000));
    stepCounts(world, { successes: 10 });
    world.advance(1_000);
    expect(world.verdict).toMatchObject({ state: 'recovering', share: 0.1, forced: undefined });
    expect(world.verdict!.version.epoch).toBe(epoch + 2);
  });

  test('a permit that was out when it was forced is not given again before its deadline', () => {
    const world = new World();
    world.add(4);
    tripToProbe(world);
    const { timeoutMs } = world.verdict!.permit!;
    world.force(forced('closed'));
    world.force(undefined);
    demand(world);
    expect(world.verdict?.permit).toBeUndefined();
    world.advance(timeoutMs + 500);
    demand(world);
    expect(world.verdict?.permit).toBeDefined();
  });

  test('a wish that comes while a write is in flight follows it', () => {
    const world = new World();
    world.add(2);
    world.storeAnswers = false;
    trip(world);
    world.force(forced('open'));
    expect(world.of('write')).toHaveLength(1);
    world.answerWrite();
    world.answerWrite();
    expect(world.verdict).toMatchObject({ state: 'open', forced: { state: 'open' }, version: { epoch: 2 } });
  });

  test('another decider goes on with what is left of it by the age of the record', () => {
    const world = new World();
    world.add(2);
    world.reportAll();
    world.force(forced('open', 60_000));
    world.restart(9, 20_000);
    expect(world.verdict?.forced).toMatchObject({ state: 'open', remainingMs: 40_000 });
    world.restart(10, 50_000);
    expect(world.verdict).toMatchObject({ forced: undefined, reason: 'released', version: { token: 10 } });
  });

  test('wall time that jumps while it lives changes nothing', () => {
    const world = new World();
    world.add(2);
    world.reportAll();
    world.force(forced('open', 60_000));
    world.unixJumpMs = 3_600_000;
    world.advance(59_000);
    expect(world.verdict?.forced).toBeDefined();
    world.advance(1_000);
    expect(world.verdict?.forced).toBeUndefined();
  });

  test('a key without a rule cannot be forced, and it is said', () => {
    const world = new World();
    world.setRule(undefined);
    world.force(forced('open'));
    expect(world.of('notice')).toMatchObject([{ word: 'not-forced' }]);
    expect(world.of('write')).toEqual([]);
  });

  test('releasing what is not forced does nothing', () => {
    const world = new World();
    world.add(2);
    world.reportAll();
    world.force(undefined);
    passCooldown(world);
    expect(world.said).toEqual([]);
  });
});
