import { describe, expect, test } from 'vitest';
import { demand, HALF_OF_TWENTY, KEY, settings, TestAgent, trip, World } from './decider.fixture.js';

describe('agents that come and go', () => {
  test('late words of a former start are not heard', () => {
    const world = new World();
    const [one, two] = world.add(2);
    const late = one!.fail(30).report(KEY, undefined);
    const again = new TestAgent('0', 'i2', world);
    world.up(again);
    world.report(two!.fail());
    world.deliver(one!, late);
    world.advance(100);
    expect(world.state).toBe('none');
    expect(world.view.agents.map(({ agent }) => agent)).toEqual([two!.id]);
  });

  test('an agent nobody announced is not heard', () => {
    const world = new World();
    const stranger = new TestAgent('stranger', 'i1', world);
    world.report(stranger.fail(50));
    expect(world.said).toEqual([]);
    expect(world.decider.views()).toEqual([]);
  });

  test('a stream that breaks and comes back within a minute goes on counting exactly', () => {
    const world = new World(settings({ trip: HALF_OF_TWENTY }));
    const [one, two] = world.add(2);
    for (const agent of [one!, two!]) world.report(agent.succeed(4));
    world.down(one!);
    one!.fail(9);
    world.advance(2_000);
    world.up(one!);
    world.report(one!);
    expect(world.view.agents.find(({ agent }) => agent === one!.id)).toMatchObject({
      successes: 4,
      failures: 9,
    });
  });

  test('after more than a minute away, what comes is a baseline', () => {
    const world = new World();
    const [one, two] = world.add(2);
    world.report(one!.succeed(4));
    world.down(one!);
    world.advance(61_000);
    world.decider.tick(world.now);
    world.report(two!.succeed());
    world.up(one!);
    world.report(one!.fail(500));
    world.advance(100);
    expect(world.view.agents.find(({ agent }) => agent === one!.id)).toMatchObject({ failures: 0 });
    expect(world.state).toBe('none');
  });

  test('a report that was lost makes the next one cover its time too', () => {
    const world = new World(settings({ trip: HALF_OF_TWENTY }));
    const agents = world.add(4);
    world.advance(20_000);
    for (const agent of agents) world.report(agent.succeed());
    for (const agent of agents) {
      agent.fail(20);
      // Never arrives.
      agent.report(KEY, undefined);
    }
    world.advance(60_000);
    for (const agent of agents) world.report(agent.succeed());
    expect(world.view.agents[0]?.failures).toBe(3);
    world.advance(500);
    expect(world.state).toBe('none');
  });
});

describe('the view of a key', () => {
  test('rates of the last ten seconds, agents with their zones, in-force versions and own states', () => {
    const world = new World();
    const [one, two] = world.add(2);
    trip(world);
    demand(world);
    one!.localState = 'half-open';
    world.report(one!);
    const view = world.view;
    expect(view).toMatchObject({ key: KEY, failureRatio: 1, callsPerSecond: 1, localised: [] });
    expect(view.rejectedPerSecond).toBeCloseTo(0.2, 3);
    expect(view.agents).toMatchObject([
      { agent: one!.id, zone: 'a', localState: 'half-open', failures: 5, rejected: 1, inForce: { epoch: 1 } },
      { agent: two!.id, zone: 'a', localState: 'closed', failures: 5, rejected: 1 },
    ]);
    world.advance(60_000);
    expect(world.view).toMatchObject({ callsPerSecond: 0, failureRatio: undefined, rejectedPerSecond: 0 });
  });

  test('a zone is judged with the whole fleet for now, and the view says so', () => {
    const world = new World(settings({ scope: 'Zone' }));
    world.add(2);
    world.reportAll();
    expect(world.view.note).toBe('scope Zone is judged over the whole fleet for now');
    trip(world);
    expect(world.state).toBe('open');
  });

  test('is of one namespace when asked for one', () => {
    const world = new World();
    world.add(1);
    world.reportAll();
    expect(world.decider.views('other')).toEqual([]);
    expect(world.decider.views()).toHaveLength(1);
  });

  test('keys of one policy are bounded, and it is said once', () => {
    const world = new World();
    const [one] = world.add(1);
    one!.succeed();
    const report = one!.report(KEY, undefined);
    const [counts] = report.keys;
    const keys = Array.from({ length: 10_002 }, (_, index) => ({
      ...counts!,
      key: { ...KEY, key: `k${index}` },
    }));
    world.deliver(one!, { ...report, keys });
    expect(world.decider.views()).toHaveLength(10_000);
    expect(world.of('notice')).toMatchObject([{ word: 'too-many-keys' }]);
  });
});
