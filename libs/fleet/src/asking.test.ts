import { describe, expect, test } from 'vitest';
import { HALF_OF_TWENTY, settings, trip, World } from './decider.fixture.js';

describe('confirmation by asking', () => {
  test('a success that was not reported yet refutes the run', () => {
    const world = new World();
    const agents = world.add(6);
    for (const agent of agents) world.report(agent.succeed());
    world.advance(450);
    agents[4]!.succeed();
    const [one, two] = agents;
    world.report(one!.fail(5));
    world.advance(5);
    agents[5]!.succeed();
    world.report(two!.fail(5));
    expect(world.of('poll')).toHaveLength(1);
    expect(world.of('poll')[0]?.agents).toHaveLength(5);
    expect(world.state).toBe('none');
  });

  test('agents that do not answer cannot block it: after 40 ms what is known decides', () => {
    const world = new World();
    for (const agent of world.add(6)) world.report(agent.succeed());
    world.advance(10);
    world.answersPolls = false;
    trip(world);
    expect(world.state).toBe('none');
    world.advance(39);
    expect(world.state).toBe('none');
    world.advance(1);
    expect(world.state).toBe('open');
  });

  test('an agent that goes away is not waited for', () => {
    const world = new World();
    const agents = world.add(3);
    for (const agent of agents) world.report(agent.succeed());
    world.advance(10);
    world.answersPolls = false;
    trip(world);
    const [poll] = world.of('poll');
    for (const agent of agents.slice(0, 2)) world.report(agent, poll!.pollId);
    expect(world.state).toBe('none');
    world.down(agents[2]!);
    expect(world.state).toBe('open');
  });

  test('who has just reported is not asked, and with nobody to ask the decision is at once', () => {
    const world = new World();
    world.add(2);
    trip(world);
    expect(world.state).toBe('open');
    expect(world.of('poll').length).toBeLessThanOrEqual(1);
  });

  test('a rule that is refuted again and again is asked for at most once a second', () => {
    const world = new World(settings({ trip: HALF_OF_TWENTY }));
    const agents = world.add(5);
    world.advance(20_000);
    const beganMs = world.ms;
    // The decider hears of failures at once; the successes are told only when it asks.
    while (world.ms < beganMs + 20_000) {
      for (const agent of agents) agent.succeed(6).fail(5);
      world.report(agents[0]!);
      world.advance(50);
    }
    expect(world.state).toBe('none');
    const late = world.of('poll').filter(({ atMs }) => atMs > beganMs + 10_000);
    expect(late.length).toBeLessThanOrEqual(11);
  });
});
