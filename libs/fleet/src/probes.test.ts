import { describe, expect, test } from 'vitest';
import {
  demand,
  endProbe,
  holderOf,
  passCooldown,
  settings,
  trip,
  tripToProbe,
  World,
} from './decider.fixture.js';

/** Permits that were given, newest last. */
function permits(world: World): string[] {
  return world
    .of('write')
    .flatMap(({ verdict }) => (verdict.permit === undefined ? [] : [verdict.permit.agent]));
}

describe('the probe of the fleet', () => {
  test('S2.8: eight agents at once when the cooldown is over: one permit in the whole fleet', () => {
    const world = new World(
      settings({
        cooldown: { initialMs: 5_000, maxMs: 5_000, factor: 1 },
        recovery: { steps: [], stepForMs: 1_000 },
      }),
    );
    world.add(8);
    const beganMs = world.ms;
    world.advance(2_600);
    trip(world);
    expect(world.ms - beganMs).toBe(3_000);
    world.advance(4_990);
    demand(world);
    expect(permits(world)).toEqual([]);
    world.advance(10);
    for (let round = 0; round < 3; round += 1) demand(world);
    expect(world.ms - beganMs).toBe(8_000);
    expect(permits(world)).toHaveLength(1);
    endProbe(world, 'failure');
    world.advance(4_990);
    demand(world);
    expect(world.state).toBe('open');
    world.advance(10);
    endProbe(world, 'success');
    expect(world.state).toBe('closed');
    expect(permits(world)).toHaveLength(2);
  });

  test('the permit is stored before it is pushed', () => {
    const world = new World();
    world.add(4);
    trip(world);
    world.storeAnswers = false;
    passCooldown(world);
    const pushes = world.of('push').length;
    expect(world.of('write').at(-1)?.verdict.permit).toBeDefined();
    demand(world);
    world.advance(20_000);
    expect(world.of('push')).toHaveLength(pushes);
    world.answerWrite();
    expect(world.of('push')).toHaveLength(pushes + 1);
    expect(world.verdict).toMatchObject({ state: 'half-open' });
  });

  test('C091: a permit that is lost with its holder goes to another agent; the cooldown stays, the epoch rises', () => {
    const world = new World();
    world.add(4);
    tripToProbe(world);
    const first = holderOf(world);
    const { epoch } = world.verdict!.version;
    world.down(first);
    for (let part = 0; part < 5; part += 1) {
      demand(world);
      world.advance(1_000);
    }
    const second = holderOf(world);
    expect(second).not.toBe(first);
    expect(world.verdict!.version.epoch).toBeGreaterThan(epoch);
    expect(world.verdict).toMatchObject({ state: 'half-open', cooldownMs: 5_000, trips: 1 });
    endProbe(world, 'success');
    expect(world.state).toBe('recovering');
  });

  test('a permit ends at its deadline: never two at a time', () => {
    const world = new World();
    world.add(4);
    tripToProbe(world);
    const { timeoutMs } = world.verdict!.permit!;
    const first = holderOf(world);
    world.advance(timeoutMs);
    demand(world);
    expect(holderOf(world)).toBe(first);
    world.advance(600);
    expect(holderOf(world)).not.toBe(first);
  });

  test('C001, S2.12: no outcome gives the permit elsewhere at once, and it is not counted as a failure', () => {
    const world = new World();
    world.add(5);
    tripToProbe(world);
    const atMs = world.ms;
    const first = holderOf(world);
    endProbe(world, 'none');
    expect(world.ms).toBe(atMs);
    expect(holderOf(world)).not.toBe(first);
    expect(world.verdict).toMatchObject({ state: 'half-open', cooldownMs: 5_000, trips: 1 });
  });

  test('permits without an outcome do not spin', () => {
    const world = new World();
    world.add(3);
    tripToProbe(world);
    const began = world.ms;
    while (world.ms < began + 10_000) {
      if (world.verdict?.permit !== undefined) endProbe(world, 'none');
      demand(world);
      world.advance(10);
    }
    expect(permits(world).length).toBeLessThan(60);
    expect(world.state).toBe('half-open');
  });

  test('where three have demand, nobody holds more than one permit in three', () => {
    const world = new World();
    world.add(3);
    tripToProbe(world);
    for (let round = 0; round < 30; round += 1) {
      demand(world);
      if (world.verdict?.permit !== undefined) endProbe(world, 'none');
      world.advance(250);
    }
    const given = permits(world);
    expect(given.length).toBeGreaterThan(20);
    for (let index = 2; index < given.length; index += 1) {
      expect(new Set(given.slice(index - 2, index + 1)).size).toBe(3);
    }
  });

  test('no demand anywhere: half-open stands and says so; the first demand gets the permit', () => {
    const world = new World();
    world.add(3);
    trip(world);
    world.advance(60_000);
    expect(world.verdict).toMatchObject({ state: 'half-open', permit: undefined });
    expect(world.view.note).toBe('waiting for demand');
    const [, two] = world.agents;
    world.report(two!.reject());
    expect(holderOf(world)).toBe(two);
    endProbe(world, 'success');
    expect(world.state).toBe('recovering');
  });

  test('C099: the late outcome of an earlier round is no word on this one', () => {
    const world = new World();
    world.add(4);
    tripToProbe(world);
    const late = holderOf(world);
    const { version } = world.verdict!;
    for (let second = 0; second < 8; second += 1) {
      demand(world);
      world.advance(1_000);
    }
    expect(world.verdict!.version.epoch).toBeGreaterThan(version.epoch);
    late.succeed().probe = { version, outcome: 'success', calls: 1 };
    world.report(late);
    expect(world.state).toBe('half-open');
    endProbe(world, 'failure');
    world.report(late);
    expect(world.state).toBe('open');
  });

  test('another agent than the holder cannot decide a probe', () => {
    const world = new World();
    world.add(4);
    tripToProbe(world);
    const liar = world.agents.find((agent) => agent !== holderOf(world))!;
    liar.succeed().probe = { version: world.verdict!.version, outcome: 'success', calls: 1 };
    world.report(liar);
    expect(world.state).toBe('half-open');
  });

  test('three successes in all, one permit after the other', () => {
    const world = new World(settings({ probe: { concurrent: 1, successesToClose: 3, timeoutMs: 1_000 } }));
    world.add(5);
    tripToProbe(world);
    endProbe(world, 'success');
    endProbe(world, 'success');
    expect(world.state).toBe('half-open');
    endProbe(world, 'success');
    expect(world.state).toBe('recovering');
    expect(new Set(permits(world)).size).toBe(3);
  });

  test('concurrent probes are calls of one holder, never more than it takes to decide', () => {
    const probe = { concurrent: 5, successesToClose: 3, timeoutMs: 1_000 };
    const world = new World(settings({ probe }));
    world.add(4);
    tripToProbe(world);
    expect(world.verdict?.permit?.calls).toBe(3);
    endProbe(world, 'success', 2);
    expect(world.state).toBe('half-open');
    endProbe(world, 'success', 3);
    expect(world.state).toBe('recovering');
  });
});
