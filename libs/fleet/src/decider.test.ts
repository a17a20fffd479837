import { describe, expect, test } from 'vitest';
import {
  demand,
  endProbe,
  HALF_OF_TWENTY,
  KEY,
  passCooldown,
  settings,
  stepCounts,
  trip,
  tripToProbe,
  World,
} from './decider.fixture.js';

describe('the whole cycle', () => {
  test('ten failures of two agents open the fleet: asked first, written, then pushed', () => {
    const world = new World();
    for (const agent of world.add(8)) world.report(agent.succeed());
    world.advance(50);
    trip(world);
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

  test('S2.14: after the probe the shares rise step by step; the epoch rises by one each time', () => {
    const world = new World();
    world.add(8);
    tripToProbe(world);
    expect(world.verdict).toMatchObject({ state: 'half-open', version: { epoch: 2 } });
    endProbe(world, 'success');
    for (const [index, share] of [0.1, 0.25, 0.5].entries()) {
      const epoch = 3 + index;
      expect(world.verdict).toMatchObject({ state: 'recovering', share, step: index, version: { epoch } });
      world.advance(4_000);
      stepCounts(world, { successes: 10 });
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

  test('S2.14: a failing step opens again, at once when it is clear, with a longer cooldown', () => {
    const world = new World();
    world.add(4);
    tripToProbe(world);
    endProbe(world, 'success');
    world.advance(700);
    stepCounts(world, { failures: 3 });
    expect(world.verdict).toMatchObject({
      state: 'open',
      reason: 'step-failed',
      cooldownMs: 10_000,
      trips: 2,
    });
    expect(world.ms - world.of('write').findLast(({ verdict }) => verdict.state === 'recovering')!.atMs).toBe(
      700,
    );
  });

  test('a step that saw too few calls is extended, never passed', () => {
    const world = new World(settings({ recovery: { steps: [0.1], stepForMs: 5_000 } }));
    world.add(3);
    tripToProbe(world);
    endProbe(world, 'success');
    for (let second = 0; second < 60; second += 1) {
      stepCounts(world, { successes: 3 });
      world.advance(1_000);
    }
    expect(world.state).toBe('recovering');
    expect(world.view.note).toContain('step extended');
    expect(world.view.note).toContain('9 of 10 calls needed');
    stepCounts(world, { successes: 4 });
    expect(world.state).toBe('closed');
  });

  test('without steps the probe closes', () => {
    const world = new World(settings({ recovery: { steps: [], stepForMs: 5_000 } }));
    world.add(2);
    tripToProbe(world);
    endProbe(world, 'success');
    expect(world.verdict).toMatchObject({ state: 'closed', reason: 'probe-succeeded' });
  });

  test('C015, C033: five cycles with a failed probe in each behave alike, and cooldowns grow to their maximum', () => {
    const world = new World(settings({ recovery: { steps: [], stepForMs: 5_000 } }));
    world.add(4);
    for (let cycle = 0; cycle < 5; cycle += 1) {
      const before = world.of('write').length;
      trip(world);
      passCooldown(world);
      endProbe(world, 'failure');
      passCooldown(world);
      endProbe(world, 'success');
      const states = world
        .of('write')
        .slice(before)
        .map(({ verdict }) => verdict.state);
      expect(states).toEqual(['open', 'half-open', 'open', 'half-open', 'closed']);
      world.advance(1_000);
    }
    trip(world);
    const cooldowns = [];
    for (let round = 0; round < 5; round += 1) {
      cooldowns.push(world.verdict?.cooldownMs);
      passCooldown(world);
      endProbe(world, 'failure');
    }
    expect(cooldowns).toEqual([5_000, 10_000, 20_000, 40_000, 60_000]);
  });

  test('fresh after closing: what failed before does not count again', () => {
    const world = new World(settings({ trip: HALF_OF_TWENTY, recovery: { steps: [], stepForMs: 5_000 } }));
    world.add(4);
    world.advance(10_000);
    for (const agent of world.agents) world.report(agent.fail(30));
    expect(world.state).toBe('open');
    passCooldown(world);
    endProbe(world, 'success');
    expect(world.state).toBe('closed');
    for (const agent of world.agents) world.report(agent.fail(2));
    world.advance(100);
    expect(world.state).toBe('closed');
  });
});

describe('the rules over the fleet', () => {
  test('nine failures do not trip; a success of anybody in between begins the run anew', () => {
    const world = new World();
    const [one, two, three] = world.add(3);
    world.report(one!.fail(5));
    world.report(two!.fail(4));
    world.advance(100);
    world.report(three!.succeed());
    world.report(one!.fail());
    world.report(two!.fail(8));
    world.advance(500);
    expect(world.state).toBe('none');
  });

  test('failures older than half a second are no part of a run', () => {
    const world = new World();
    const [one, two] = world.add(2);
    for (let second = 0; second < 20; second += 1) {
      world.report(one!.fail(2));
      world.report(two!.fail(2));
      world.advance(1_000);
    }
    expect(world.state).toBe('none');
  });

  test('too few agents: localised, and the view says where and why', () => {
    const world = new World();
    const agents = world.add(10);
    for (const agent of agents) world.report(agent.succeed());
    world.advance(400);
    agents[3]!.fail(20).localState = 'open';
    world.report(agents[3]!);
    world.advance(50);
    expect(world.state).toBe('none');
    expect(world.view).toMatchObject({ localised: [agents[3]!.id] });
    expect(world.view.note).toMatch(/^localised: .*seen by 1 of \d+ agents \(quorum 2\)/);
  });

  test('S2.15: another key of the same policy is untouched', () => {
    const world = new World();
    world.add(2);
    const other = { ...KEY, key: 'call.shard=2' };
    for (const agent of world.agents) world.deliver(agent, agent.succeed().report(other, undefined));
    trip(world);
    const [first, second] = world.decider.views('shop').sort((a, b) => a.key.key.localeCompare(b.key.key));
    expect(first).toMatchObject({ key: other, verdict: undefined });
    expect(second).toMatchObject({ key: KEY, verdict: { state: 'open' } });
  });

  test('C101: a killed agent that reported failures leaves the judged counts', () => {
    const world = new World(settings({ trip: HALF_OF_TWENTY }));
    const [bad, ...well] = world.add(4);
    world.advance(10_000);
    for (const agent of well) world.report(agent.succeed(20));
    world.report(bad!.fail(39));
    world.down(bad!);
    well[0]!.fail(19);
    world.report(well[0]!);
    world.advance(1_000);
    expect(world.state).toBe('none');
  });

  test('counts of another rule never trip this one; a changed rule keeps the state and begins new counts', () => {
    const world = new World();
    const [one, two] = world.add(2);
    one!.rule = 'rule-2';
    two!.rule = 'rule-2';
    trip(world);
    expect(world.state).toBe('none');
    world.setRule(settings({ ruleHash: 'rule-2' }));
    world.advance(1_000);
    trip(world);
    expect(world.state).toBe('open');
    world.setRule(settings({ ruleHash: 'rule-3' }));
    expect(world.state).toBe('open');
  });

  test('S8, partition: a healed stream with minutes of failures trips nothing', () => {
    const world = new World(settings({ trip: HALF_OF_TWENTY }));
    world.add(5);
    world.reportAll();
    for (const agent of world.agents) agent.fail(300);
    world.advance(120_000);
    for (const agent of world.agents) world.report(agent.succeed(3));
    world.advance(1_000);
    expect(world.state).toBe('none');
  });

  test('C019: a backend that succeeds every fifth call closes only after three successes in a row', () => {
    const probe = { concurrent: 1, successesToClose: 3, timeoutMs: 1_000 };
    const world = new World(settings({ probe }));
    world.add(5);
    trip(world);
    let [calls, failed] = [0, 0];
    const untilMs = world.ms + 60_000;
    while (world.ms < untilMs) {
      if (world.state === 'open') passCooldown(world);
      calls += 1;
      const ok = calls % 5 === 0;
      if (!ok) failed += 1;
      endProbe(world, ok ? 'success' : 'failure');
      expect(world.state).not.toBe('closed');
      if (world.state === 'half-open')
        expect(world.of('write').at(-1)?.verdict.message).toContain('1 of 3 probes');
    }
    expect(failed).toBeLessThan(8);
  });
});

describe('what a key says while nothing changes', () => {
  test('an open verdict lives 30 s and is renewed every 10 s under the same version', () => {
    const world = new World(settings({ cooldown: { initialMs: 60_000, maxMs: 60_000, factor: 1 } }));
    world.add(2);
    trip(world);
    const tripMs = world.ms;
    world.advance(35_000);
    const pushes = world.of('push');
    expect(pushes.map(({ atMs }) => atMs - tripMs)).toEqual([0, 10_000, 20_000, 30_000]);
    expect(new Set(pushes.map(({ verdict }) => verdict.version.epoch)).size).toBe(1);
    expect(pushes.every(({ ttlMs }) => ttlMs === 30_000)).toBe(true);
    expect(world.of('write')).toHaveLength(1);
  });

  test('a closed verdict is renewed for one time to live, then the key is silent', () => {
    const world = new World(settings({ recovery: { steps: [], stepForMs: 5_000 } }));
    world.add(2);
    tripToProbe(world);
    endProbe(world, 'success');
    const before = world.of('push').length;
    world.advance(300_000);
    expect(world.of('push').length - before).toBe(3);
    expect(world.decider.wakeAtMs()).toBe(Infinity);
  });

  test('a healthy key says nothing at all', () => {
    const world = new World();
    world.add(5);
    for (let second = 0; second < 30; second += 1) {
      for (const agent of world.agents) world.report(agent.succeed(10));
      world.advance(1_000);
    }
    expect(world.said).toEqual([]);
    expect(world.decider.wakeAtMs()).toBe(Infinity);
    expect(world.view).toMatchObject({ verdict: undefined, failureRatio: 0, localised: [], note: undefined });
    expect(world.view.callsPerSecond).toBeGreaterThanOrEqual(45);
  });

  test('a policy that is removed takes its verdicts away, and a key that comes back is not older than before', () => {
    const world = new World();
    world.add(2);
    trip(world);
    world.setRule(undefined);
    expect(world.of('remove')).toMatchObject([{ key: KEY }]);
    expect(world.decider.views()).toEqual([]);
    expect(world.decider.wakeAtMs()).toBe(Infinity);
    world.setRule(settings());
    demand(world);
    world.advance(1_000);
    trip(world);
    expect(world.verdict).toMatchObject({ state: 'open', version: { epoch: 2 } });
  });

  test('scope Instance is viewed and never decided', () => {
    const world = new World(settings({ scope: 'Instance' }));
    world.add(3);
    trip(world);
    world.advance(1_000);
    expect(world.said).toEqual([]);
    expect(world.view.note).toContain('every agent decides alone');
  });

  test('scope Instance shows the own breakers of the agents, and cannot be forced', () => {
    const world = new World(settings({ scope: 'Instance' }));
    const [one, two] = world.add(2);
    if (one === undefined || two === undefined) throw new Error('two agents');
    one.localState = 'open';
    world.reportAll();
    world.force({ state: 'open', remainingMs: 60_000, by: 'ann', reason: 'test' });
    world.advance(1_000);
    expect(world.said).toMatchObject([{ kind: 'notice', word: 'not-forced' }]);
    expect(world.view.agents.map(({ localState }) => localState)).toEqual(['open', 'closed']);
    expect(world.view.verdict).toBeUndefined();
    world.setRule(settings({ scope: 'Instance', ruleHash: 'rule-2' }));
    expect(world.view.agents).toHaveLength(2);
  });
});

describe('keys that nobody calls any more', () => {
  const keys = (world: World): string[] => world.decider.views().map(({ key }) => key.key);

  test('of another per go at once, and do not come back by what an agent still says of the former rule', () => {
    const world = new World();
    world.add(2);
    world.reportAll();
    world.setRule(settings({ per: ['operation'], ruleHash: 'rule-2' }));
    expect(keys(world)).toEqual([]);
    world.reportAll();
    world.advance(20_000);
    expect(keys(world)).toEqual([]);
    for (const agent of world.agents) agent.rule = 'rule-2';
    world.reportAll();
    expect(keys(world)).toEqual(['target']);
  });

  test('stay while the rule makes the same keys, however long nothing is called', () => {
    const world = new World();
    world.add(2);
    world.reportAll();
    world.setRule(settings({ ruleHash: 'rule-2', trip: { consecutiveFailures: 20 } }));
    world.advance(600_000);
    expect(keys(world)).toEqual(['target']);
  });

  test('of a former rule stay while a verdict is in force', () => {
    const world = new World();
    world.add(2);
    trip(world);
    world.setRule(settings({ per: ['operation'], ruleHash: 'rule-2' }));
    expect(world.state).toBe('open');
  });

  test('go with their stored record a minute after their last agent', () => {
    const world = new World();
    world.add(2);
    world.reportAll();
    world.force({ state: 'closed', remainingMs: 1_000, by: 'ann', reason: 'test' });
    world.advance(2_000);
    for (const agent of world.agents) world.down(agent);
    world.advance(50_000);
    expect(keys(world)).toEqual(['target']);
    world.ms += 30_000;
    world.tick();
    expect(keys(world)).toEqual([]);
    expect(world.of('remove')).toMatchObject([{ key: KEY }]);
  });
});
