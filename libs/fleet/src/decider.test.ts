import { describe, expect, test } from 'vitest';
import { settings, World } from './decider.fixture.js';

/** Ten failures from two agents within half a second, the last one at the world's present time. */
function trip(world: World): void {
  const [one, two] = world.agents;
  for (let pair = 0; pair < 5; pair += 1) {
    world.advance(pair === 0 ? 0 : 100);
    for (const agent of [one!, two!]) {
      agent.fail();
      world.report(agent);
    }
  }
}

describe('the whole cycle', () => {
  test('ten failures of two agents open the fleet: written first, then pushed', () => {
    const world = new World();
    for (const agent of world.add(8)) world.report(agent.succeed());
    world.advance(50);
    trip(world);
    expect(world.state).toBe('open');
    const kinds = world.said.map(({ kind }) => kind).filter((kind) => kind !== 'notice');
    expect(kinds).toEqual(['poll', 'write', 'push']);
    expect(world.verdict).toMatchObject({
      version: { era: 1, token: 7, epoch: 1 },
      state: 'open',
      reason: 'consecutive-failures',
      cooldownMs: 5_000,
      trips: 1,
    });
    expect(world.verdict?.message).toContain('10 failures and no success');
  });

  test('cooldown, one probe, three shares, closed; the epoch rises by one each time', () => {
    const world = new World();
    world.add(8);
    trip(world);
    world.advance(4_999);
    for (const agent of world.agents) world.report(agent.reject());
    expect(world.state).toBe('open');
    world.advance(1);
    expect(world.verdict).toMatchObject({ state: 'half-open', version: { epoch: 2 } });
    const holder = world.agents.find(({ id }) => id === world.verdict?.permit?.agent)!;
    holder.succeed().probe = { version: world.verdict!.version, outcome: 'success', calls: 1 };
    world.report(holder);
    for (const [index, share] of [0.1, 0.25, 0.5].entries()) {
      expect(world.verdict).toMatchObject({
        state: 'recovering',
        share,
        step: index,
        version: { epoch: 3 + index },
      });
      for (const agent of world.agents) {
        agent.succeed(2).step = { offered: 20, admitted: 2, successes: 2, failures: 0, slow: 0 };
      }
      world.advance(4_000);
      world.reportAll();
      expect(world.verdict?.share).toBe(share);
      world.advance(1_000);
    }
    expect(world.verdict).toMatchObject({ state: 'closed', version: { epoch: 6 }, trips: 0 });
    expect(world.verdict?.transitions.map(({ to, share }) => [to, share])).toEqual([
      ['open', 0],
      ['half-open', 0],
      ['recovering', 0.1],
      ['recovering', 0.25],
      ['recovering', 0.5],
      ['closed', 0],
    ]);
  });

  test('a step that fails, and a probe that fails, open again with a longer cooldown', () => {
    const world = new World(settings({ recovery: { steps: [0.1], stepForMs: 5_000 } }));
    world.add(4);
    trip(world);
    const cooldowns = [];
    for (let round = 0; round < 5; round += 1) {
      cooldowns.push(world.verdict?.cooldownMs);
      world.advance(world.verdict!.cooldownMs - 1);
      for (const agent of world.agents) world.report(agent.reject());
      world.advance(1);
      expect(world.state).toBe('half-open');
      const holder = world.agents.find(({ id }) => id === world.verdict?.permit?.agent)!;
      holder.fail().probe = { version: world.verdict!.version, outcome: 'failure', calls: 1 };
      world.report(holder);
      expect(world.verdict).toMatchObject({ state: 'open', reason: 'probe-failed' });
    }
    expect(cooldowns).toEqual([5_000, 10_000, 20_000, 40_000, 60_000]);
  });
});
