import { agree, breakerSettings, checkModel, commandsOf } from '@bulwark/testing';
import fc from 'fast-check';
import { test } from 'vitest';
import { type BreakerSettings, LocalBreaker, type LocalTransition, Permit } from './index.js';

type How = 'ok' | 'slow' | 'failed' | 'ignored' | 'released';
type StateName = 'closed' | 'open' | 'half-open' | 'recovering';

interface Ended {
  readonly failed: boolean;
  readonly slow: boolean;
  readonly atMs: number;
}

/** A call that the model let in. */
interface Admitted {
  readonly epoch: number;
  readonly deadlineMs: number;
}

/** The obvious breaker: what happened since the state began is a list, judged anew each time. */
class ListBreaker {
  state: StateName = 'closed';
  epoch = 1;
  /** The cooldown of each time it opened. */
  readonly opened: number[] = [];
  private rules: BreakerSettings['trip'];
  private untilMs = 0;
  private cooldownMs = 0;
  private ended: Ended[] = [];
  private probes: Admitted[] = [];
  private admitted = 0;
  private successes = 0;
  private step = 0;
  private share = 1;
  /** Of a whole call: each one offered adds the share, each whole lets one in. */
  private credit = 0;

  constructor(private settings: BreakerSettings) {
    this.rules = settings.trip;
  }

  letTimePass(nowMs: number): void {
    if (this.state === 'open' && nowMs >= this.untilMs) this.become('half-open');
    else if (this.state === 'recovering') this.passStep(nowMs);
  }

  admit(nowMs: number): Admitted | undefined {
    this.letTimePass(nowMs);
    const { epoch } = this;
    if (this.state === 'closed') return { epoch, deadlineMs: Infinity };
    if (this.state === 'open') return undefined;
    if (this.state === 'recovering') {
      this.credit += this.share;
      if (this.credit < 1) return undefined;
      this.credit -= 1;
      return { epoch, deadlineMs: Infinity };
    }
    if (!this.hasProbe(nowMs)) return undefined;
    const probe = { epoch, deadlineMs: nowMs + this.settings.probe.timeoutMs };
    this.probes.push(probe);
    this.admitted += 1;
    return probe;
  }

  wouldRefuse(nowMs: number): boolean {
    this.letTimePass(nowMs);
    return this.state === 'open' || (this.state === 'half-open' && !this.hasProbe(nowMs));
  }

  end(call: Admitted, how: How, nowMs: number): void {
    if (call.epoch !== this.epoch) return;
    const probing = this.probes.includes(call);
    this.probes = this.probes.filter((other) => other !== call);
    if (how === 'ignored' || how === 'released') {
      if (probing) this.admitted -= 1;
      if (how === 'released' && this.state === 'recovering')
        this.credit = Math.min(this.credit + 1, 1.999_999);
      return;
    }
    const failed = how === 'failed';
    this.ended.push({ failed, slow: how === 'slow', atMs: nowMs });
    if (this.state === 'half-open') {
      if (failed) this.reopen(nowMs);
      else if (probing) this.successes += 1;
      if (this.state === 'half-open' && probing && this.successes >= this.settings.probe.successesToClose)
        this.becomeStep(0, nowMs);
    } else if (this.tripped(nowMs)) {
      if (this.state === 'closed') this.open(this.settings.cooldown.initialMs, nowMs);
      else this.reopen(nowMs);
    } else if (this.state === 'recovering') this.passStep(nowMs);
  }

  reset(): void {
    this.become('closed');
  }

  reopenUntil(untilMs: number): void {
    this.cooldownMs = this.settings.cooldown.initialMs;
    this.become('open');
    this.untilMs = untilMs;
  }

  update(settings: BreakerSettings): void {
    const sameRule = settings.ruleHash === this.settings.ruleHash;
    this.settings = settings;
    if (this.state !== 'closed' || sameRule) return;
    this.rules = settings.trip;
    this.ended = [];
  }

  private tripped(nowMs: number): boolean {
    const { consecutiveFailures, failureRate, slowRate } = this.rules;
    const lastGood = this.ended.findLastIndex(({ failed }) => !failed);
    const run = this.ended.length - 1 - lastGood;
    return (
      (consecutiveFailures !== undefined && run >= consecutiveFailures) ||
      this.rateHolds(failureRate, ({ failed }) => failed, nowMs) ||
      this.rateHolds(slowRate, ({ slow }) => slow, nowMs)
    );
  }

  private rateHolds(
    rule: BreakerSettings['trip']['failureRate'],
    bad: (one: Ended) => boolean,
    nowMs: number,
  ): boolean {
    if (rule === undefined) return false;
    const { window } = rule;
    // A window of time is ten tenths, and the oldest leaves whole.
    const tenth = (ms: number): number => ('ms' in window ? Math.floor(ms / (window.ms / 10)) : 0);
    const held =
      'calls' in window
        ? this.ended.slice(-window.calls)
        : this.ended.filter(({ atMs }) => tenth(atMs) > tenth(nowMs) - 10);
    return held.length >= rule.minimumCalls && held.filter(bad).length >= rule.ratio * held.length - 1e-9;
  }

  private hasProbe(nowMs: number): boolean {
    const { concurrent, successesToClose, maxCalls } = this.settings.probe;
    const alive = this.probes.filter(({ deadlineMs }) => deadlineMs > nowMs);
    this.admitted -= this.probes.length - alive.length;
    this.probes = alive;
    return (
      alive.length < concurrent &&
      this.successes + alive.length < Math.max(concurrent, successesToClose) &&
      this.admitted < (maxCalls ?? Infinity)
    );
  }

  /** Calls that a step needs before it may pass, and at which its rates may hold. */
  private enough(): number {
    const { failureRate, slowRate, consecutiveFailures } = this.settings.trip;
    const minimums = [failureRate?.minimumCalls, slowRate?.minimumCalls, consecutiveFailures];
    return Math.min(10, ...minimums.map((minimum) => minimum ?? 10));
  }

  private passStep(nowMs: number): void {
    const lastFailed = this.ended.at(-1)?.failed === true;
    if (nowMs < this.untilMs || this.ended.length < this.enough() || lastFailed) return;
    this.becomeStep(this.step + 1, nowMs);
  }

  private becomeStep(step: number, nowMs: number): void {
    const share = this.settings.recovery.steps[step] ?? 1;
    if (share >= 1) {
      this.become('closed');
      return;
    }
    this.become('recovering');
    this.step = step;
    this.share = share;
    this.untilMs = nowMs + this.settings.recovery.stepForMs;
    const { failureRate, slowRate } = this.rules;
    this.rules = {
      ...this.rules,
      ...(failureRate && { failureRate: { ...failureRate, minimumCalls: this.enough() } }),
      ...(slowRate && { slowRate: { ...slowRate, minimumCalls: this.enough() } }),
    };
  }

  private open(cooldownMs: number, nowMs: number): void {
    this.become('open');
    this.cooldownMs = cooldownMs;
    this.untilMs = nowMs + cooldownMs;
    this.opened.push(cooldownMs);
  }

  private reopen(nowMs: number): void {
    const { maxMs, factor } = this.settings.cooldown;
    this.open(Math.min(maxMs, this.cooldownMs * factor), nowMs);
  }

  private become(state: StateName): void {
    this.state = state;
    this.epoch += 1;
    this.rules = this.settings.trip;
    this.ended = [];
    this.probes = [];
    this.admitted = 0;
    this.successes = 0;
    this.credit = 0;
  }
}

const trips: BreakerSettings['trip'][] = [
  { consecutiveFailures: 1 },
  { consecutiveFailures: 3 },
  { failureRate: { ratio: 0.5, minimumCalls: 4, window: { calls: 6 } } },
  { failureRate: { ratio: 0.5, minimumCalls: 4, window: { ms: 1000 } } },
  { slowRate: { slowerThanMs: 1, ratio: 0.6, minimumCalls: 3, window: { ms: 1000 } } },
  {
    consecutiveFailures: 4,
    failureRate: { ratio: 0.4, minimumCalls: 5, window: { ms: 2000 } },
    slowRate: { slowerThanMs: 1, ratio: 1, minimumCalls: 2, window: { calls: 3 } },
  },
];

const settings = fc
  .record({
    trip: fc.constantFrom(...trips),
    factor: fc.constantFrom(1, 2),
    concurrent: fc.constantFrom(1, 1, 2, 3),
    successesToClose: fc.constantFrom(1, 1, 2, 3),
    // At most `successesToClose` more than needed, or unbounded.
    spareCalls: fc.constantFrom(0, 1, undefined),
    steps: fc.constantFrom<number[]>([], [], [0.5], [0.25, 0.5], [0.5, 1]),
  })
  .map(({ trip, factor, concurrent, successesToClose, spareCalls, steps }) =>
    breakerSettings({
      trip,
      ruleHash: JSON.stringify(trip),
      cooldown: { initialMs: 1000, maxMs: 3000, factor },
      probe: {
        concurrent,
        successesToClose,
        timeoutMs: 500,
        ...(spareCalls !== undefined && { maxCalls: successesToClose + spareCalls }),
      },
      recovery: { steps, stepForMs: 800 },
    }),
  );

const command = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record({ do: fc.constant('pass' as const), calls: fc.constantFrom(1, 1, 2, 5) }),
  },
  {
    weight: 40,
    arbitrary: fc.record({ do: fc.constant('admit' as const), calls: fc.constantFrom(1, 1, 2, 5) }),
  },
  {
    weight: 50,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      how: fc.constantFrom<How>('ok', 'ok', 'slow', 'failed', 'failed', 'failed', 'ignored', 'released'),
      pick: fc.nat(30),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(0, 1, 100, 400, 500, 1000, 3000),
    }),
  },
  // Calls that end as they begin: what brings a breaker on its way.
  {
    weight: 25,
    arbitrary: fc.record({
      do: fc.constant('traffic' as const),
      how: fc.constantFrom<How>('ok', 'ok', 'failed', 'slow'),
      calls: fc.constantFrom(1, 4, 20),
    }),
  },
  { weight: 10, arbitrary: fc.constant({ do: 'ask' as const }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('update' as const), settings }) },
  { weight: 1, arbitrary: fc.constantFrom({ do: 'reset' as const }, { do: 'reopen' as const }) },
);

test('S2: a breaker agrees with a list under any interleaving of calls, late and neutral ends, time and new settings', () => {
  const seen = new Map<string, number>();
  checkModel(
    fc.property(settings, commandsOf(command, 60), (initial, commands) => {
      const log: LocalTransition[] = [];
      const breaker = new LocalBreaker(
        initial,
        () => 0,
        (transition) => log.push(transition),
      );
      const model = new ListBreaker(initial);
      const under: { readonly permit: Permit | undefined; readonly call: Admitted }[] = [];
      let nowMs = 5000;
      for (const step of commands) {
        if (step.do === 'wait') nowMs += step.ms;
        else if (step.do === 'admit') {
          for (let call = 0; call < step.calls; call += 1) admit(nowMs);
        } else if (step.do === 'pass') {
          for (let call = 0; call < step.calls; call += 1) pass();
        } else if (step.do === 'end') {
          end(step.pick, step.how, nowMs);
        } else if (step.do === 'traffic') {
          for (let call = 0; call < step.calls; call += 1) {
            if (admit(nowMs)) end(under.length - 1, step.how, nowMs);
          }
        } else if (step.do === 'ask') {
          agree(breaker.wouldRefuse(nowMs), model.wouldRefuse(nowMs), 'would refuse');
          for (const { permit, call } of under) {
            if (permit === undefined) continue;
            const current = call.epoch === model.epoch && call.deadlineMs > nowMs;
            agree(breaker.isCurrent(permit, nowMs), current, 'is current');
          }
        } else if (step.do === 'update') {
          breaker.update(step.settings);
          model.update(step.settings);
        } else if (step.do === 'reset') {
          breaker.reset(nowMs);
          model.reset();
        } else {
          breaker.reopenUntil(nowMs + 700, nowMs);
          model.reopenUntil(nowMs + 700);
        }
        check(nowMs);
      }
      for (const { from, to, reason } of log) count(seen, `${from} to ${to}: ${reason}`);

      function admit(atMs: number): boolean {
        const answer = breaker.admit(atMs);
        const call = model.admit(atMs);
        agree(answer instanceof Permit, call !== undefined, 'admitted');
        if (!(answer instanceof Permit) || call === undefined) return false;
        agree(answer.deadlineMs, call.deadlineMs, 'deadline of the permit');
        under.push({ permit: answer, call });
        return true;
      }

      /** A closed breaker lets a call pass without a permit; it only remembers the epoch. */
      function pass(): void {
        const { closedEpoch } = breaker;
        agree(closedEpoch, model.state === 'closed' ? model.epoch : 0, 'the closed epoch');
        if (closedEpoch === 0) return;
        under.push({ permit: undefined, call: { epoch: closedEpoch, deadlineMs: Infinity } });
      }

      function end(pick: number, how: How, atMs: number): void {
        const [one] = under.splice(pick % Math.max(1, under.length), 1);
        if (one === undefined) return;
        if (one.permit !== undefined) endPermit(breaker, one.permit, how, atMs);
        else endPassed(breaker, one.call.epoch, how, atMs);
        model.end(one.call, how, atMs);
      }

      function check(atMs: number): void {
        model.letTimePass(atMs);
        agree(breaker.stateAt(atMs), model.state, 'state');
        agree(breaker.epoch, model.epoch, 'epoch');
        const opened = log.filter(({ to, reason }) => to === 'open' && reason !== 'fleet-silent');
        agree(opened.map(({ cooldownMs }) => cooldownMs).join(), model.opened.join(), 'cooldowns');
      }
    }),
    3,
  );
  // The commands reach every edge; a model of a breaker that never leaves closed proves nothing.
  for (const edge of EDGES) agree((seen.get(edge) ?? 0) > 0, true, `runs that saw ${edge}`);
});

const EDGES = [
  'closed to open: consecutive-failures',
  'closed to open: failure-rate',
  'closed to open: slow-rate',
  'open to half-open: cooldown-over',
  'half-open to open: probe-failed',
  'half-open to closed: probe-succeeded',
  'half-open to recovering: probe-succeeded',
  'recovering to open: step-failed',
  'recovering to recovering: step-passed',
  'recovering to closed: recovered',
];

function endPermit(breaker: LocalBreaker, permit: Permit, how: How, nowMs: number): void {
  if (how === 'released') {
    breaker.release(permit);
    return;
  }
  const kind = how === 'failed' ? 'failure' : how === 'ignored' ? 'ignored' : 'success';
  breaker.complete(permit, { kind, slow: how === 'slow' }, nowMs);
}

/** Failures of such calls come with a permit that is made for them afterwards. */
function endPassed(breaker: LocalBreaker, epoch: number, how: How, nowMs: number): void {
  if (how === 'ok') breaker.succeed(epoch, nowMs);
  else if (how === 'slow') breaker.count(epoch, false, true, nowMs);
  else if (how === 'failed') {
    endPermit(breaker, new Permit('local', epoch, Infinity, undefined), how, nowMs);
  }
}

function count(seen: Map<string, number>, what: string): void {
  seen.set(what, (seen.get(what) ?? 0) + 1);
}
