import { breakerSettings as breaker } from '@bulwark/testing';
import { describe, expect, test } from 'vitest';
import { LocalBreaker, type LocalTransition } from './local-breaker.js';
import { Permit } from './permit.js';
import type { BreakerSettings } from './settings.js';

class Probe {
  readonly log: LocalTransition[] = [];
  readonly breaker: LocalBreaker;

  constructor(overrides: Partial<BreakerSettings> = {}) {
    this.breaker = new LocalBreaker(
      breaker(overrides),
      () => 0,
      (transition) => this.log.push(transition),
    );
  }

  admit(nowMs: number): Permit {
    const answer = this.breaker.admit(nowMs);
    if (!(answer instanceof Permit)) throw new Error(answer.reason);
    return answer;
  }

  refused(nowMs: number): string | undefined {
    const answer = this.breaker.admit(nowMs);
    if (!(answer instanceof Permit)) return answer.reason;
    this.breaker.release(answer);
    return undefined;
  }

  end(permit: Permit, ok: boolean, nowMs: number, slow = false): void {
    this.breaker.complete(permit, { kind: ok ? 'success' : 'failure', slow }, nowMs);
  }

  call(ok: boolean, nowMs: number, slow = false): void {
    this.end(this.admit(nowMs), ok, nowMs, slow);
  }

  get path(): string[] {
    return this.log.map(({ from, to }) => `${from}>${to}`);
  }
}

const two = { trip: { consecutiveFailures: 2 } };

/** fail, ok, fail, fail at 0, 1, 2, 3 s. */
function trippedAt3(overrides: Partial<BreakerSettings> = {}): Probe {
  const probe = new Probe({ ...two, ...overrides });
  [false, true, false, false].forEach((ok, second) => probe.call(ok, second * 1000));
  return probe;
}

describe('S2', () => {
  test('S2.1: a success resets the run; open at 3 until 8', () => {
    const probe = trippedAt3();
    expect(probe.path).toEqual(['closed>open']);
    expect(probe.log[0]).toMatchObject({ atMs: 3000, reason: 'consecutive-failures', cooldownMs: 5000 });
    expect(probe.breaker.admit(3000)).toEqual({ reason: 'breaker-open', retryAfterMs: 5000 });
  });

  test('S2.2: a call at 7.99 is refused', () => {
    expect(trippedAt3().refused(7990)).toBe('breaker-open');
  });

  test('S2.3: a call admitted before the trip that succeeds at 7.99 leaves it open', () => {
    const probe = new Probe(two);
    probe.call(false, 0);
    const early = probe.admit(1000);
    probe.call(true, 1000);
    probe.call(false, 2000);
    probe.call(false, 3000);
    probe.end(early, true, 7990);
    expect(probe.breaker.stateAt(7990)).toBe('open');
    expect(probe.path).toEqual(['closed>open']);
  });

  test('S2.4: of 8 callers at once at 8 exactly 1 is admitted', () => {
    const probe = trippedAt3();
    const answers = Array.from({ length: 8 }, () => probe.breaker.admit(8000));
    expect(answers.filter((answer) => answer instanceof Permit)).toHaveLength(1);
    expect(
      answers.filter((answer) => !(answer instanceof Permit) && answer.reason === 'breaker-half-open'),
    ).toHaveLength(7);
  });

  test('S2.5 and S2.6: a failed probe at 8 opens until 13; the probe at 13 closes', () => {
    const probe = trippedAt3();
    probe.call(false, 8000);
    expect(probe.refused(12_990)).toBe('breaker-open');
    probe.call(true, 13_000);
    expect(probe.breaker.stateAt(13_000)).toBe('closed');
    expect(probe.path).toEqual([
      'closed>open',
      'open>half-open',
      'half-open>open',
      'open>half-open',
      'half-open>closed',
    ]);
  });

  test('S2.9: window of 20 calls, minimum 20, ratio 50 %: 9 failures stay closed, the 20th call decides', () => {
    const probe = new Probe({
      trip: { failureRate: { ratio: 0.5, minimumCalls: 20, window: { calls: 20 } } },
    });
    for (let call = 0; call < 9; call += 1) probe.call(false, call);
    expect(probe.path).toEqual([]);
    for (let call = 9; call < 18; call += 1) probe.call(true, call);
    probe.call(false, 18);
    expect(probe.path).toEqual([]);
    probe.call(true, 19);
    expect(probe.log[0]).toMatchObject({ to: 'open', reason: 'failure-rate', atMs: 19 });
  });

  test('S2.10: a success slower than the threshold counts as slow', () => {
    const slowRate = { slowerThanMs: 500, ratio: 0.8, minimumCalls: 5, window: { ms: 10_000 } };
    const probe = new Probe({ trip: { slowRate } });
    for (let call = 0; call < 4; call += 1) probe.call(true, call, true);
    expect(probe.path).toEqual([]);
    probe.call(true, 5, false);
    expect(probe.log[0]).toMatchObject({ to: 'open', reason: 'slow-rate' });
  });

  test('S2.12: a probe without an outcome frees its place at once, and no cooldown changes', () => {
    const probe = trippedAt3({ cooldown: { initialMs: 5000, maxMs: 60_000, factor: 2 } });
    probe.breaker.release(probe.admit(8000));
    const neutral = probe.admit(8001);
    probe.breaker.complete(neutral, { kind: 'ignored', slow: false }, 8002);
    probe.call(false, 8003);
    expect(probe.log.at(-1)).toMatchObject({ to: 'open', cooldownMs: 10_000 });
  });

  test('S2.12: a probe whose caller died frees its place at its deadline', () => {
    const probe = trippedAt3();
    const lost = probe.admit(8000);
    expect(probe.refused(8999)).toBe('breaker-half-open');
    const next = probe.admit(9000);
    probe.end(lost, true, 9001);
    expect(probe.breaker.stateAt(9001)).toBe('half-open');
    probe.end(next, true, 9002);
    expect(probe.breaker.stateAt(9002)).toBe('closed');
  });

  test('S2.14: a success at the probe ramps 10, 25, 50, 100 %, and a failing step goes back to open', () => {
    const steps = {
      recovery: { steps: [0.1, 0.25, 0.5], stepForMs: 5000 },
      trip: { consecutiveFailures: 3 },
    };
    const probe = new Probe(steps);
    for (let call = 0; call < 3; call += 1) probe.call(false, 0);
    probe.call(true, 5000);
    expect(probe.breaker.stateAt(5000)).toBe('recovering');
    const shares: number[] = [];
    for (let step = 0; step < 3; step += 1) {
      let admitted = 0;
      for (let call = 0; call < 200; call += 1) {
        const nowMs = 5000 + step * 5000 + call * 25;
        const answer = probe.breaker.admit(nowMs);
        if (!(answer instanceof Permit)) continue;
        admitted += 1;
        probe.end(answer, true, nowMs);
      }
      shares.push(admitted / 200);
    }
    expect(shares).toEqual([0.1, 0.25, 0.5]);
    expect(probe.breaker.stateAt(20_000)).toBe('closed');

    const bad = new Probe(steps);
    for (let call = 0; call < 3; call += 1) bad.call(false, 0);
    bad.call(true, 5000);
    for (let call = 0; call < 40 && bad.breaker.stateAt(5001) === 'recovering'; call += 1) {
      const answer = bad.breaker.admit(5001);
      if (answer instanceof Permit) bad.end(answer, false, 5001);
    }
    expect(bad.log.at(-1)).toMatchObject({ from: 'recovering', to: 'open', reason: 'step-failed' });
  });
});

describe('recovery', () => {
  const ramp = {
    trip: { failureRate: { ratio: 0.5, minimumCalls: 20, window: { ms: 10_000 } } },
    recovery: { steps: [0.5], stepForMs: 1000 },
    cooldown: { initialMs: 1000, maxMs: 60_000, factor: 2 },
  };

  function recovering(): Probe {
    const probe = new Probe(ramp);
    for (let call = 0; call < 20; call += 1) probe.call(false, 0);
    probe.call(true, 1000);
    return probe;
  }

  test('a step without enough calls goes on past its time, and passes when it has them', () => {
    const probe = recovering();
    for (let call = 0; call < 9; call += 1) {
      probe.refused(1500);
      probe.call(true, 1500);
    }
    expect(probe.breaker.stateAt(60_000)).toBe('recovering');
    probe.refused(60_000);
    probe.call(true, 60_000);
    expect(probe.breaker.stateAt(60_000)).toBe('closed');
  });

  test('half of ten calls failing in a step reopens with a longer cooldown, which a full close resets', () => {
    const probe = recovering();
    for (let call = 0; call < 10; call += 1) {
      probe.refused(1500);
      probe.call(call % 2 === 1, 1500);
    }
    expect(probe.log.at(-1)).toMatchObject({ to: 'open', reason: 'step-failed', cooldownMs: 2000 });
    probe.call(true, 3500);
    for (let call = 0; call < 10; call += 1) {
      probe.refused(4500);
      probe.call(true, 4500);
    }
    expect(probe.breaker.stateAt(4500)).toBe('closed');
    for (let call = 0; call < 20; call += 1) probe.call(false, 5000);
    expect(probe.log.at(-1)).toMatchObject({ to: 'open', cooldownMs: 1000 });
  });

  test('a step whose last call failed goes on until one succeeds', () => {
    const probe = recovering();
    for (let call = 0; call < 10; call += 1) {
      probe.refused(1500);
      probe.call(call < 9, 1500);
    }
    expect(probe.breaker.stateAt(2000)).toBe('recovering');
    probe.refused(2000);
    probe.call(true, 2000);
    expect(probe.breaker.stateAt(2000)).toBe('closed');
  });

  test('a call of an earlier step says nothing about a later one', () => {
    const probe = new Probe({ ...ramp, recovery: { steps: [0.5, 0.75], stepForMs: 1000 } });
    for (let call = 0; call < 20; call += 1) probe.call(false, 0);
    probe.call(true, 1000);
    probe.refused(1000);
    const early = probe.admit(1000);
    for (let call = 0; call < 10; call += 1) {
      probe.refused(2000);
      probe.call(true, 2000);
    }
    expect(probe.log.filter(({ reason }) => reason === 'step-passed')).toHaveLength(1);
    const epoch = probe.breaker.epoch;
    for (let call = 0; call < 30; call += 1) probe.end(early, false, 2001);
    expect(probe.breaker.epoch).toBe(epoch);
  });
});

describe('known faults of others', () => {
  test('one failure after an idle hour does not trip on stale counts', () => {
    const rate = { ratio: 0.5, minimumCalls: 10, window: { ms: 10_000 } };
    const probe = new Probe({ trip: { failureRate: rate } });
    for (let call = 0; call < 9; call += 1) probe.call(false, call);
    probe.call(false, 3_600_000);
    expect(probe.path).toEqual([]);
  });

  test('C005: a call begun before the trip does not decide the probe, whichever way it ends', () => {
    for (const ok of [true, false]) {
      const probe = new Probe(two);
      const early = probe.admit(0);
      probe.call(false, 100);
      probe.call(false, 100);
      const current = probe.admit(5100);
      probe.end(early, ok, 5200);
      expect(probe.breaker.stateAt(5200)).toBe('half-open');
      probe.end(current, true, 5300);
      expect(probe.path).toEqual(['closed>open', 'open>half-open', 'half-open>closed']);
    }
  });

  test('C007: 50 callers at the edge of half-open: exactly the permitted number', () => {
    const probe = trippedAt3({ probe: { concurrent: 3, successesToClose: 3, timeoutMs: 1000 } });
    const answers = Array.from({ length: 50 }, () => probe.breaker.admit(8000));
    expect(answers.filter((answer) => answer instanceof Permit)).toHaveLength(3);
  });

  test('C009: one probe that succeeds closes, whatever minimum of calls the rule has', () => {
    const probe = new Probe({
      trip: { failureRate: { ratio: 0.5, minimumCalls: 10, window: { ms: 10_000 } } },
    });
    for (let call = 0; call < 10; call += 1) probe.call(false, 0);
    probe.call(true, 5000);
    expect(probe.breaker.stateAt(5000)).toBe('closed');
  });

  test('C013: 3 probes, 2 released, 10 more at once: never more than 3 in flight, 3 ended ones decide', () => {
    const probe = trippedAt3({ probe: { concurrent: 3, successesToClose: 3, timeoutMs: 1000 } });
    const first = [probe.admit(8000), probe.admit(8000), probe.admit(8000)];
    probe.breaker.release(first[0]!);
    probe.breaker.release(first[1]!);
    probe.breaker.release(first[1]!);
    const more = Array.from({ length: 10 }, () => probe.breaker.admit(8001)).filter(
      (a) => a instanceof Permit,
    );
    expect(more).toHaveLength(2);
    for (const permit of [first[2]!, ...more]) {
      expect(probe.breaker.stateAt(8002)).toBe('half-open');
      probe.end(permit, true, 8002);
      if (probe.breaker.stateAt(8002) === 'half-open') expect(probe.refused(8002)).toBe('breaker-half-open');
    }
    expect(probe.breaker.stateAt(8002)).toBe('closed');
  });

  test('C015: five full cycles, a failed probe in each, always the same', () => {
    const probe = new Probe({ ...two, cooldown: { initialMs: 1000, maxMs: 60_000, factor: 2 } });
    let nowMs = 0;
    const cooldowns: number[] = [];
    for (let cycle = 0; cycle < 5; cycle += 1) {
      probe.call(false, nowMs);
      probe.call(false, nowMs);
      probe.call(false, (nowMs += 1000));
      probe.call(true, (nowMs += 2000));
      cooldowns.push(
        ...probe.log
          .splice(0)
          .filter(({ to }) => to === 'open')
          .map(({ cooldownMs }) => cooldownMs),
      );
    }
    expect(cooldowns).toEqual([1000, 2000, 1000, 2000, 1000, 2000, 1000, 2000, 1000, 2000]);
  });

  test('C017: after the probe’s success every caller of the same tick is admitted', () => {
    const probe = trippedAt3();
    probe.call(true, 8000);
    for (let call = 0; call < 100; call += 1) expect(probe.refused(8000)).toBeUndefined();
  });

  test('C019: one lucky success does not close when three are asked for', () => {
    const probe = trippedAt3({ probe: { concurrent: 1, successesToClose: 3, timeoutMs: 1000 } });
    probe.call(true, 8000);
    probe.call(true, 8000);
    probe.call(false, 8000);
    expect(probe.breaker.stateAt(8000)).toBe('open');
  });

  test('C027: a neutral outcome neither resets the run nor closes', () => {
    const probe = new Probe({ trip: { consecutiveFailures: 5 } });
    for (let call = 0; call < 4; call += 1) probe.call(false, 0);
    probe.breaker.complete(probe.admit(0), { kind: 'ignored', slow: true }, 0);
    expect(probe.path).toEqual([]);
    probe.call(false, 0);
    expect(probe.path).toEqual(['closed>open']);
  });

  test('C031: failure, success twenty times stays closed', () => {
    const probe = new Probe({ trip: { consecutiveFailures: 5 } });
    for (let call = 0; call < 40; call += 1) probe.call(call % 2 === 1, call);
    expect(probe.path).toEqual([]);
  });

  test('C033: opens at exactly five failures, four times over', () => {
    const probe = new Probe({ trip: { consecutiveFailures: 5 } });
    for (let round = 0; round < 4; round += 1) {
      const nowMs = round * 10_000;
      for (let call = 0; call < 4; call += 1) probe.call(false, nowMs);
      expect(probe.breaker.stateAt(nowMs)).toBe('closed');
      probe.call(false, nowMs);
      expect(probe.breaker.stateAt(nowMs)).toBe('open');
      probe.call(true, nowMs + 5000);
    }
  });

  test('C155: one failing call in 10 s never reaches a minimum of 20 in 10 s; a run of failures opens', () => {
    const rate = new Probe({
      trip: { failureRate: { ratio: 0.5, minimumCalls: 20, window: { ms: 10_000 } } },
    });
    const run = new Probe({ trip: { consecutiveFailures: 5 } });
    for (let call = 0; call < 60; call += 1) rate.call(false, call * 10_000);
    for (let call = 0; call < 5; call += 1) run.call(false, call * 10_000);
    expect(rate.path).toEqual([]);
    expect(run.path).toEqual(['closed>open']);
  });

  test('C151: only the time given counts, and it may stand still', () => {
    const probe = trippedAt3();
    for (let call = 0; call < 1000; call += 1) expect(probe.refused(3000)).toBe('breaker-open');
    expect(probe.refused(8000)).toBeUndefined();
  });
});

test('maxCalls bounds one half-open episode by the probes that were made', () => {
  const probe = trippedAt3({ probe: { concurrent: 1, successesToClose: 2, timeoutMs: 1000, maxCalls: 2 } });
  probe.breaker.release(probe.admit(8000));
  probe.call(true, 8000);
  probe.call(true, 8001);
  expect(probe.breaker.stateAt(8001)).toBe('closed');
});

test('the cooldown grows with each failed probe up to its maximum', () => {
  const probe = trippedAt3({ cooldown: { initialMs: 5000, maxMs: 12_000, factor: 2 } });
  probe.call(false, 8000);
  probe.call(false, 18_000);
  probe.call(false, 30_000);
  const opens = probe.log.filter(({ to }) => to === 'open').map(({ cooldownMs }) => cooldownMs);
  expect(opens).toEqual([5000, 10_000, 12_000, 12_000]);
});

test('new settings with the same rule keep the counts; another rule begins anew; open stays open', () => {
  const probe = new Probe(two);
  probe.call(false, 0);
  probe.breaker.update(breaker({ ...two, cooldown: { initialMs: 9000, maxMs: 9000, factor: 1 } }));
  probe.call(false, 0);
  expect(probe.log[0]).toMatchObject({ to: 'open', cooldownMs: 9000 });
  probe.breaker.update(breaker({ trip: { consecutiveFailures: 9 } }));
  expect(probe.refused(8999)).toBe('breaker-open');
  const other = new Probe(two);
  other.call(false, 0);
  other.breaker.update(breaker({ trip: { consecutiveFailures: 1 } }));
  expect(other.path).toEqual([]);
});
