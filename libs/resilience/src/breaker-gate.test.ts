import { breakerSettings as breaker } from '@bulwark/testing';
import { describe, expect, test } from 'vitest';
import { BreakerGate, type GateChange, type GateOptions } from './breaker-gate.js';
import { Permit } from './permit.js';
import { phaseOf } from './share-admission.js';
import type { FleetVerdict } from './verdict.js';

function verdict(overrides: Partial<FleetVerdict> & { epoch?: number } = {}): FleetVerdict {
  const { epoch = 1, ...rest } = overrides;
  return {
    version: { era: 1, token: 10, epoch },
    state: 'open',
    share: 0,
    permitCalls: 0,
    permitMs: 1000,
    ttlMs: 30_000,
    forced: undefined,
    forcedMs: 0,
    reason: 'consecutive-failures',
    cooldownMs: 5000,
    ...rest,
  };
}

function gateOf(options: Partial<GateOptions> = {}): { gate: BreakerGate; changes: GateChange[] } {
  const changes: GateChange[] = [];
  const gate = new BreakerGate({
    key: 'target',
    settings: breaker({ scope: 'Fleet', trip: { consecutiveFailures: 3 } }),
    random: () => 0.5,
    listener: { changed: (_, change) => changes.push(change), transition: () => undefined },
    slot: 0,
    ...options,
  });
  return { gate, changes };
}

function permit(gate: BreakerGate, nowMs: number): Permit {
  const answer = gate.admit(nowMs);
  if (!(answer instanceof Permit)) throw new Error(answer.reason);
  return answer;
}

const reason = (gate: BreakerGate, nowMs: number): string => {
  const answer = gate.admit(nowMs);
  return answer instanceof Permit ? 'admitted' : answer.reason;
};

const end = (gate: BreakerGate, held: Permit, kind: 'success' | 'failure' | 'ignored', nowMs: number): void =>
  gate.complete(held, { kind, durationMs: 1 }, nowMs);

const fail = (gate: BreakerGate, times: number, nowMs: number): void => {
  for (let call = 0; call < times; call += 1) end(gate, permit(gate, nowMs), 'failure', nowMs);
};

describe('forced × fleet × local', () => {
  test('forced open refuses whatever the fleet and the process say, and outlives the time to live', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'closed', forced: 'open', forcedMs: 60_000, ttlMs: 1000 }), 0);
    expect(gate.admit(59_999)).toEqual({ reason: 'forced-open', retryAfterMs: 1 });
    expect(reason(gate, 60_000)).toBe('admitted');
  });

  test('forced closed admits and counts, beats an open local breaker and an open fleet, and trips nothing', () => {
    const { gate } = gateOf();
    fail(gate, 3, 0);
    expect(reason(gate, 1)).toBe('breaker-open');
    gate.applyVerdict(verdict({ forced: 'closed', forcedMs: 10_000 }), 1);
    fail(gate, 50, 2);
    expect(gate.counters(2)).toMatchObject({ failures: 53, rejected: 1 });
    expect(reason(gate, 9999)).toBe('admitted');
    expect(reason(gate, 10_001)).toBe('breaker-open');
  });

  test('a released force is heeded at once', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'closed', forced: 'open', forcedMs: 60_000 }), 0);
    gate.applyVerdict(verdict({ state: 'closed', epoch: 2 }), 1);
    expect(reason(gate, 2)).toBe('admitted');
  });

  test('fleet open refuses, with what is left of its cooldown', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict(), 0);
    expect(gate.admit(2000)).toEqual({ reason: 'breaker-open', retryAfterMs: 3000 });
    expect(gate.stateAt(2000)).toEqual({ state: 'open', by: 'fleet' });
    expect(gate.wouldRefuse(2000)).toBe(true);
  });

  test('fleet half-open refuses all but the holder of its permit', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'half-open' }), 0);
    expect(reason(gate, 1)).toBe('breaker-half-open');
    gate.applyVerdict(verdict({ state: 'half-open', permitCalls: 1, epoch: 2 }), 2);
    expect(permit(gate, 3).probe).toBe(true);
    expect(reason(gate, 3)).toBe('breaker-half-open');
  });

  test('fleet closed, and no verdict: the local breaker decides', () => {
    for (const applied of [true, false]) {
      const { gate } = gateOf();
      if (applied) gate.applyVerdict(verdict({ state: 'closed' }), 0);
      fail(gate, 3, 1);
      expect(reason(gate, 2)).toBe('breaker-open');
      expect(gate.stateAt(2)).toEqual({ state: 'open', by: 'local' });
    }
  });

  test('a verdict not closed whose time to live ended: from half-open, after a random part of the cooldown', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ ttlMs: 1000 }), 0);
    expect(reason(gate, 999)).toBe('breaker-open');
    expect(reason(gate, 1000)).toBe('breaker-open');
    expect(reason(gate, 3499)).toBe('breaker-open');
    expect(gate.counters(3499)).toMatchObject({ localState: 'open', inForce: undefined });
    const probe = permit(gate, 3500);
    expect(probe.source).toBe('local-probe');
    expect(reason(gate, 3500)).toBe('breaker-half-open');
    end(gate, probe, 'success', 3501);
    expect(reason(gate, 3502)).toBe('admitted');
  });

  test('a closed verdict that ends changes nothing', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'closed', ttlMs: 1000 }), 0);
    expect(reason(gate, 1001)).toBe('admitted');
  });
});

describe('the local breaker under a verdict', () => {
  test('decides again at once when the fleet gives the key up, and any verdict is new then', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ forced: 'open', forcedMs: 60_000 }), 0);
    gate.dropVerdict();
    expect(reason(gate, 1)).toBe('admitted');
    expect(gate.counters(1).inForce).toBeUndefined();
    expect(gate.applyVerdict(verdict({ epoch: 0 }), 2)).toBe(true);
  });

  test('is frozen while the fleet’s is not closed, and fresh when the fleet closes', () => {
    const { gate } = gateOf();
    const early = permit(gate, 0);
    fail(gate, 2, 0);
    gate.applyVerdict(verdict(), 1);
    end(gate, early, 'failure', 2);
    expect(gate.counters(3)).toMatchObject({ failures: 3, localState: 'closed' });
    gate.applyVerdict(verdict({ state: 'closed', epoch: 2 }), 4);
    fail(gate, 2, 5);
    expect(reason(gate, 6)).toBe('admitted');
  });

  test('an open local breaker is closed by the fleet’s closing, not by a verdict that always was closed', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'closed' }), 0);
    fail(gate, 3, 1);
    gate.applyVerdict(verdict({ state: 'closed', epoch: 2 }), 2);
    expect(reason(gate, 3)).toBe('breaker-open');
    gate.applyVerdict(verdict({ epoch: 3 }), 4);
    gate.applyVerdict(verdict({ state: 'closed', epoch: 4 }), 5);
    expect(reason(gate, 6)).toBe('admitted');
  });

  test('S8.4: an older verdict is dropped, by era, then token, then epoch', () => {
    const { gate } = gateOf();
    gate.applyVerdict({ ...verdict(), version: { era: 2, token: 20, epoch: 5 } }, 0);
    for (const version of [
      { era: 1, token: 99, epoch: 99 },
      { era: 2, token: 19, epoch: 99 },
      { era: 2, token: 20, epoch: 4 },
    ]) {
      expect(gate.applyVerdict({ ...verdict({ state: 'closed' }), version }, 1)).toBe(false);
      expect(reason(gate, 2)).toBe('breaker-open');
    }
    expect(
      gate.applyVerdict({ ...verdict({ state: 'closed' }), version: { era: 3, token: 1, epoch: 1 } }, 3),
    ).toBe(true);
  });

  test('an equal version only extends the time to live: a spent permit stays spent', () => {
    const { gate } = gateOf();
    const halfOpen = verdict({ state: 'half-open', permitCalls: 1, ttlMs: 1000 });
    gate.applyVerdict(halfOpen, 0);
    const probe = permit(gate, 1);
    gate.applyVerdict(halfOpen, 900);
    expect(reason(gate, 1500)).toBe('breaker-half-open');
    expect(gate.verdictAt(1899)?.version.epoch).toBe(1);
    end(gate, probe, 'success', 1600);
    expect(gate.counters(1600).probe).toEqual({ version: halfOpen.version, outcome: 'success', calls: 1 });
    gate.applyVerdict({ ...halfOpen, state: 'closed' }, 1700);
    expect(gate.stateAt(1700).state).toBe('half-open');
  });

  test('a verdict that lapsed and is renewed is in force again', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ ttlMs: 1000 }), 0);
    expect(gate.stateAt(10_000)).toEqual({ state: 'half-open', by: 'local' });
    gate.applyVerdict(verdict({ ttlMs: 1000 }), 10_000);
    expect(gate.stateAt(10_001)).toEqual({ state: 'open', by: 'fleet' });
    expect(gate.stateAt(20_000)).toEqual({ state: 'half-open', by: 'local' });
  });
});

describe('the fleet’s permit', () => {
  test.each([1, 2, 5])('allows exactly %i calls', (permitCalls) => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'half-open', permitCalls }), 0);
    let admitted = 0;
    for (let call = 0; call < 50; call += 1) if (reason(gate, 1) === 'admitted') admitted += 1;
    expect(admitted).toBe(permitCalls);
  });

  test('ends with its own deadline, and says that no call was made', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'half-open', permitCalls: 1, permitMs: 1000 }), 0);
    expect(gate.counters(999).probe).toBeUndefined();
    expect(reason(gate, 1000)).toBe('breaker-half-open');
    expect(gate.counters(1000).probe).toMatchObject({ outcome: 'none', calls: 0 });
  });

  test('S2.12: released or neutral it reports no outcome, and is not used again here', () => {
    for (const how of ['release', 'ignored'] as const) {
      const { gate, changes } = gateOf();
      gate.applyVerdict(verdict({ state: 'half-open', permitCalls: 2 }), 0);
      const probe = permit(gate, 1);
      if (how === 'release') gate.release(probe, 2);
      else end(gate, probe, 'ignored', 2);
      expect(changes.at(-1)).toBe('probe');
      expect(gate.counters(3).probe).toMatchObject({ outcome: 'none', calls: 1 });
      expect(reason(gate, 3)).toBe('breaker-half-open');
      gate.release(probe, 4);
      end(gate, probe, 'success', 4);
      expect(gate.counters(5).probe).toMatchObject({ outcome: 'none', calls: 1 });
    }
  });

  test('a failure settles it: its other calls are not made', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'half-open', permitCalls: 3 }), 0);
    end(gate, permit(gate, 1), 'success', 2);
    expect(gate.counters(2).probe).toMatchObject({ outcome: 'success', calls: 1 });
    end(gate, permit(gate, 3), 'failure', 4);
    expect(gate.counters(4).probe).toMatchObject({ outcome: 'failure', calls: 2 });
    expect(reason(gate, 5)).toBe('breaker-half-open');
  });

  test('C099: a late outcome of an earlier permit says nothing about the present one', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'half-open', permitCalls: 1 }), 0);
    const early = permit(gate, 1);
    gate.applyVerdict(verdict({ epoch: 2 }), 2);
    end(gate, early, 'success', 3);
    expect(gate.counters(3)).toMatchObject({ probe: undefined, successes: 1 });
    gate.applyVerdict(verdict({ state: 'half-open', permitCalls: 1, epoch: 3 }), 4);
    expect(gate.counters(4).probe).toBeUndefined();
    expect(reason(gate, 5)).toBe('admitted');
  });
});

describe('the fleet’s share', () => {
  /** Calls offered in turn at an even pace, each agent at its own moment. */
  function admittedShare(run: { agents: number; perSecond: number; share: number; epoch: number }): number {
    const gates = Array.from({ length: run.agents }, (_, slot) => {
      const { gate } = gateOf({ slot });
      gate.applyVerdict(verdict({ state: 'recovering', share: run.share, epoch: run.epoch }), 0);
      return gate;
    });
    const periodMs = 1000 / run.perSecond;
    let offered = 0;
    let admitted = 0;
    gates.forEach((gate, index) => {
      for (let nowMs = (index * periodMs) / run.agents; nowMs < 5000; nowMs += periodMs) {
        offered += 1;
        if (reason(gate, nowMs) === 'admitted') admitted += 1;
      }
      const { step } = gate.counters(5000);
      expect(step?.offered).toBeGreaterThan(0);
    });
    return admitted / offered;
  }

  test.each([0.1, 0.25, 0.5])('is exact within 2 points for 200 slow agents at %d, in any epoch', (share) => {
    for (let epoch = 0; epoch < 200; epoch += 1) {
      const got = admittedShare({ agents: 200, perSecond: 0.5, share, epoch });
      expect(Math.abs(got - share)).toBeLessThan(0.02);
    }
  });

  test.each([0.1, 0.25, 0.5])('is exact within 2 points for 20 busy agents at %d, in any epoch', (share) => {
    for (let epoch = 0; epoch < 200; epoch += 1) {
      const got = admittedShare({ agents: 20, perSecond: 20, share, epoch });
      expect(Math.abs(got - share)).toBeLessThan(0.02);
    }
  });

  test('one agent alone admits every tenth call for ever', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'recovering', share: 0.1 }), 0);
    const admitted: number[] = [];
    for (let call = 1; call <= 100_000; call += 1) if (reason(gate, 1) === 'admitted') admitted.push(call);
    expect(admitted).toHaveLength(10_000);
    admitted.slice(1).forEach((call, index) => expect(call - (admitted[index] ?? 0)).toBe(10));
  });

  test('counts what was offered, admitted and how it ended, anew for each version', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'recovering', share: 0.5 }), 0);
    for (let call = 0; call < 10; call += 1) {
      const answer = gate.admit(1);
      if (answer instanceof Permit) end(gate, answer, call < 6 ? 'success' : 'failure', 2);
    }
    expect(gate.counters(3).step).toEqual({ offered: 10, admitted: 5, successes: 3, failures: 2, slow: 0 });
    gate.applyVerdict(verdict({ state: 'recovering', share: 0.75, epoch: 2 }), 4);
    expect(gate.counters(4).step).toEqual({ offered: 0, admitted: 0, successes: 0, failures: 0, slow: 0 });
  });

  test('a call refused after its admission gives its part back to the next one', () => {
    const { gate } = gateOf();
    gate.applyVerdict(verdict({ state: 'recovering', share: 0.1 }), 0);
    const answers = Array.from({ length: 10 }, () => gate.admit(1));
    const held = answers.find((answer) => answer instanceof Permit);
    gate.release(held as Permit, 2);
    expect(reason(gate, 3)).toBe('admitted');
    expect(gate.counters(3).step).toMatchObject({ offered: 11, admitted: 1 });
  });

  test('phases of any first n slots are evenly spread, and turn with the epoch', () => {
    for (const agents of [1, 3, 20, 200]) {
      for (const epoch of [0, 1, 77, 1_000_003]) {
        const phases = Array.from({ length: agents }, (_, slot) => phaseOf(slot, epoch)).sort(
          (a, b) => a - b,
        );
        const gaps = phases.map((phase, index) => (phases[index + 1] ?? (phases[0] ?? 0) + 1) - phase);
        expect(Math.max(...gaps)).toBeLessThanOrEqual(2 / agents);
      }
    }
    expect(phaseOf(0, 1)).not.toBe(phaseOf(0, 2));
  });
});

describe('counters', () => {
  test('tell runs, ages and totals; neutral outcomes leave runs alone', () => {
    const { gate } = gateOf({ settings: breaker({ trip: { consecutiveFailures: 100 } }) });
    expect(gate.counters(5)).toEqual({
      rule: '{"consecutiveFailures":100}',
      successes: 0,
      failures: 0,
      slow: 0,
      ignored: 0,
      rejected: 0,
      runFailures: 0,
      runFirstFailureAgeMs: 0,
      successesSinceFailure: 0,
      lastSuccessAgeMs: undefined,
      localState: 'closed',
      inForce: undefined,
      probe: undefined,
      step: undefined,
    });
    end(gate, permit(gate, 10), 'success', 10);
    fail(gate, 1, 20);
    end(gate, permit(gate, 25), 'ignored', 25);
    fail(gate, 1, 30);
    expect(gate.counters(50)).toMatchObject({
      successes: 1,
      failures: 2,
      ignored: 1,
      runFailures: 2,
      runFirstFailureAgeMs: 30,
      successesSinceFailure: 0,
      lastSuccessAgeMs: 40,
    });
    end(gate, permit(gate, 60), 'success', 60);
    expect(gate.counters(60)).toMatchObject({
      runFailures: 0,
      runFirstFailureAgeMs: 0,
      successesSinceFailure: 1,
    });
  });

  test('C023: 100 refused calls are 100 rejections and no failure', () => {
    const { gate } = gateOf();
    fail(gate, 3, 0);
    for (let call = 0; call < 100; call += 1) gate.admit(1);
    expect(gate.counters(1)).toMatchObject({ failures: 3, rejected: 100 });
  });

  test('slow counts successes and failures over the threshold, and no neutral ones', () => {
    const slowRate = { slowerThanMs: 500, ratio: 1, minimumCalls: 100, window: { ms: 1000 } };
    const { gate } = gateOf({ settings: breaker({ trip: { slowRate } }) });
    for (const kind of ['success', 'failure', 'ignored'] as const) {
      gate.complete(permit(gate, 0), { kind, durationMs: 501 }, 0);
      gate.complete(permit(gate, 0), { kind, durationMs: 500 }, 0);
    }
    expect(gate.counters(0).slow).toBe(2);
  });

  test('a rule that comes back counts on, not from zero', () => {
    const { gate } = gateOf();
    const [one, other] = [
      breaker({ trip: { consecutiveFailures: 3 } }),
      breaker({ trip: { consecutiveFailures: 9 } }),
    ];
    fail(gate, 2, 0);
    gate.update(other);
    expect(gate.counters(0)).toMatchObject({ rule: other.ruleHash, failures: 0 });
    fail(gate, 1, 0);
    gate.update(one);
    expect(gate.counters(0)).toMatchObject({ rule: one.ruleHash, failures: 2 });
  });

  test('every change raises the revision and is told', () => {
    const { gate, changes } = gateOf();
    fail(gate, 3, 0);
    expect(changes).toEqual(['failure', 'failure', 'local', 'failure']);
    expect(gate.revision).toBe(4);
    gate.admit(1);
    gate.applyVerdict(verdict(), 2);
    expect(changes.slice(4)).toEqual(['rejected', 'verdict']);
  });
});

test('a permit is current only under the state that gave it', () => {
  const { gate } = gateOf();
  const local = permit(gate, 0);
  expect(gate.isCurrent(local, 0)).toBe(true);
  gate.applyVerdict(verdict({ state: 'recovering', share: 1 }), 1);
  expect(gate.isCurrent(local, 1)).toBe(false);
  const step = permit(gate, 1);
  expect(gate.isCurrent(step, 1)).toBe(true);
  gate.applyVerdict(verdict({ state: 'closed', epoch: 2 }), 2);
  expect(gate.isCurrent(step, 2)).toBe(false);
  expect(gate.isCurrent(permit(gate, 3), 3)).toBe(true);
});
