import { describe, expect, test } from 'vitest';
import { createDecider } from './decider.js';
import {
  demand,
  endProbe,
  HALF_OF_TWENTY,
  holderOf,
  passCooldown,
  settings,
  stepCounts,
  trip,
  tripToProbe,
  World,
} from './decider.fixture.js';

describe('another decider goes on', () => {
  test('C093: an open verdict is taken over under the new token before anything else, with its whole cooldown', () => {
    const world = new World();
    world.add(4);
    trip(world);
    world.advance(3_000);
    world.restart(9);
    expect(world.verdict).toMatchObject({
      version: { era: 1, token: 9, epoch: 2 },
      state: 'open',
      reason: 'consecutive-failures',
      cooldownMs: 5_000,
      trips: 1,
    });
    const atMs = world.ms;
    world.advance(4_990);
    demand(world);
    demand(world);
    expect(world.state).toBe('open');
    world.advance(10);
    expect(world.state).toBe('half-open');
    expect(world.ms - atMs).toBe(5_000);
    endProbe(world, 'success');
    expect(world.state).toBe('recovering');
  });

  test('a permit that may still be out: none is given before its time has passed', () => {
    const world = new World();
    world.add(4);
    tripToProbe(world);
    const { timeoutMs } = world.verdict!.permit!;
    world.restart(9);
    expect(world.verdict).toMatchObject({ state: 'half-open', permit: undefined, version: { token: 9 } });
    for (let ms = 0; ms < timeoutMs; ms += 100) {
      demand(world);
      expect(world.verdict?.permit).toBeUndefined();
      world.advance(100);
    }
    world.advance(600);
    demand(world);
    expect(world.verdict?.permit).toBeDefined();
  });

  test('a recovery step begins anew, on counts of the new version only', () => {
    const world = new World(settings({ recovery: { steps: [0.1, 0.5], stepForMs: 5_000 } }));
    world.add(4);
    tripToProbe(world);
    endProbe(world, 'success');
    world.advance(4_900);
    stepCounts(world, { successes: 50 });
    const old = world.verdict!;
    world.restart(9);
    world.advance(4_900);
    expect(world.verdict).toMatchObject({ state: 'recovering', share: 0.1, step: 0 });
    for (const agent of world.agents) world.deliver(agent, agent.report(world.key, old));
    world.advance(10_000);
    expect(world.verdict?.share).toBe(0.1);
    stepCounts(world, { successes: 50 });
    expect(world.verdict?.share).toBe(0.5);
  });

  test('a closed verdict is said again, not written again', () => {
    const world = new World(settings({ recovery: { steps: [], stepForMs: 1_000 } }));
    world.add(2);
    tripToProbe(world);
    endProbe(world, 'success');
    const writes = world.of('write').length;
    const pushes = world.of('push').length;
    world.restart(9);
    world.advance(60_000);
    expect(world.of('write')).toHaveLength(writes);
    expect(world.of('push').length - pushes).toBe(4);
    expect(world.verdict).toMatchObject({ state: 'closed', version: { token: 7 } });
  });

  test('a restart trips nothing: neither the past that first reports bring, nor the first second', () => {
    const world = new World(settings({ trip: { ...HALF_OF_TWENTY, consecutiveFailures: 10 } }));
    world.add(4);
    for (const agent of world.agents) world.report(agent.fail());
    for (const agent of world.agents) agent.fail(5_000).succeed();
    world.restart(9);
    world.reportAll();
    expect(world.state).toBe('none');
    world.advance(200);
    trip(world);
    expect(world.state).toBe('none');
    world.advance(400);
    expect(world.said.filter(({ kind }) => kind === 'write')).toEqual([]);
  });

  test('a fault that lasts still trips after that second', () => {
    const world = new World();
    world.add(4);
    world.reportAll();
    world.restart(9);
    for (let tick = 0; tick < 60; tick += 1) {
      world.advance(50);
      for (const agent of world.agents) world.report(agent.fail());
      if (world.state === 'open') break;
    }
    const [write] = world.of('write');
    expect(write?.atMs).toBeGreaterThanOrEqual(world.ms - 1_000);
    expect(world.state).toBe('open');
  });

  test('S8.2: a decider that finds a newer token says nothing', () => {
    const world = new World();
    world.add(3);
    trip(world);
    world.restart(6);
    const said = world.said.length;
    passCooldown(world);
    world.advance(60_000);
    expect(world.said.slice(said)).toEqual([]);
    expect(world.view.note).toContain('another decider has the claim');
  });

  test('S8.4: a refused write silences the key for good, renewals too', () => {
    const world = new World();
    world.add(3);
    trip(world);
    world.storeAnswers = false;
    passCooldown(world);
    world.answerWrite(false);
    expect(world.of('notice').at(-1)).toMatchObject({ word: 'write-refused' });
    const said = world.said.length;
    for (let second = 0; second < 60; second += 1) {
      demand(world);
      world.advance(1_000);
    }
    expect(world.said).toHaveLength(said);
    expect(world.decider.wakeAtMs()).toBe(Infinity);
  });

  test('a store that does not answer holds the key as it is, and nothing is renewed meanwhile', () => {
    const world = new World();
    world.add(3);
    world.storeAnswers = false;
    trip(world);
    world.advance(120_000);
    expect(world.of('write')).toHaveLength(1);
    expect(world.of('push')).toEqual([]);
    world.answerWrite();
    expect(world.verdict).toMatchObject({ state: 'open' });
  });

  test('an answer to an older write is no answer to this one', () => {
    const world = new World();
    world.add(3);
    trip(world);
    world.storeAnswers = false;
    passCooldown(world);
    const { version } = world.verdict!;
    for (const effects of [
      world.decider.written(world.key, version, true, world.now),
      world.decider.written(world.key, version, false, world.now),
    ]) {
      expect(effects).toEqual([]);
    }
    world.answerWrite();
    expect(holderOf(world)).toBeDefined();
  });

  test('a verdict without a rule waits until the rule is known; a policy that is no more is taken away', () => {
    const world = new World();
    world.add(3);
    trip(world);
    const resume = [world.stored!];
    const decider = createDecider({ era: 1, token: 9, resume, now: world.now });
    expect(decider.tick(world.now)).toEqual([]);
    expect(decider.wakeAtMs()).toBe(Infinity);
    const { namespace, policy } = world.key;
    const rule = { namespace, policy, settings: settings() };
    expect(decider.setRule(rule, rule, world.now)).toMatchObject([
      { kind: 'write', verdict: { state: 'open', version: { token: 9, epoch: 2 } } },
    ]);
    const other = createDecider({ era: 1, token: 9, resume, now: world.now });
    expect(other.setRule(rule, undefined, world.now)).toMatchObject([{ kind: 'remove', key: world.key }]);
  });
});
