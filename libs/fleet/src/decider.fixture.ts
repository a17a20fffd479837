import type { BreakerSettings } from '@bulwark/resilience';
import type {
  AgentReport,
  BreakerKey,
  DeciderEffect,
  FleetDecider,
  Forced,
  KeyCounts,
  KeyView,
  Now,
  ProbeResult,
  StepCounts,
  StoredVerdict,
} from './contract.js';
import { createDecider } from './decider.js';

export const KEY: BreakerKey = { namespace: 'shop', policy: 'reco', key: 'target' };
const START_UNIX_MS = 1_700_000_000_000;

export function settings(overrides: Partial<BreakerSettings> = {}): BreakerSettings {
  return {
    scope: 'Fleet',
    per: ['target'],
    trip: { consecutiveFailures: 10 },
    quorum: { instances: 2, share: 0.2 },
    cooldown: { initialMs: 5_000, maxMs: 60_000, factor: 2 },
    probe: { concurrent: 1, successesToClose: 1, timeoutMs: 1_000 },
    recovery: { steps: [0.1, 0.25, 0.5], stepForMs: 5_000 },
    ruleHash: 'rule-1',
    ...overrides,
  };
}

export const HALF_OF_TWENTY: BreakerSettings['trip'] = {
  failureRate: { ratio: 0.5, minimumCalls: 20, window: { ms: 10_000 } },
};

/** Counters of one agent and one key, reported by hand. */
export class TestAgent {
  readonly id: string;
  rule = 'rule-1';
  sequence = 0;
  successes = 0;
  failures = 0;
  slow = 0;
  rejected = 0;
  runFailures = 0;
  private runFromMs = 0;
  private lastSuccessMs: number | undefined;
  /** When the first count that was not reported yet was made. */
  private fromMs: number | undefined;
  probe: ProbeResult | undefined;
  step: StepCounts | undefined;
  localState: KeyCounts['localState'] = 'closed';

  constructor(
    name: string,
    readonly incarnation: string,
    private readonly world: { readonly ms: number },
    readonly zone = 'a',
  ) {
    this.id = `shop/storefront/${name}`;
  }

  succeed(count = 1): this {
    this.fromMs ??= this.world.ms;
    this.successes += count;
    this.runFailures = 0;
    this.lastSuccessMs = this.world.ms;
    return this;
  }

  fail(count = 1): this {
    this.fromMs ??= this.world.ms;
    if (this.runFailures === 0) this.runFromMs = this.world.ms;
    this.failures += count;
    this.runFailures += count;
    return this;
  }

  reject(count = 1): this {
    this.fromMs ??= this.world.ms;
    this.rejected += count;
    return this;
  }

  /** What it would say now; the next one has the next number. */
  report(key: BreakerKey, inForce: StoredVerdict | undefined, pollId = 0): AgentReport {
    const nowMs = this.world.ms;
    this.sequence += 1;
    const coversMs = Math.max(1, nowMs - (this.fromMs ?? nowMs));
    this.fromMs = undefined;
    const { rule, successes, failures, slow, rejected, runFailures, probe, step, localState } = this;
    const counts: KeyCounts = {
      key,
      rule,
      successes,
      failures,
      slow,
      ignored: 0,
      rejected,
      runFailures,
      runFirstFailureAgeMs: runFailures === 0 ? 0 : nowMs - this.runFromMs,
      successesSinceFailure: 0,
      lastSuccessAgeMs: this.lastSuccessMs === undefined ? undefined : nowMs - this.lastSuccessMs,
      localState,
      inForce: inForce?.version,
      probe,
      step,
    };
    return { incarnation: this.incarnation, sequence: this.sequence, coversMs, keys: [counts], pollId };
  }
}

/** A decider with a clock of its own, a store that takes every write at once, and polls answered by hand or at once. */
export class World {
  ms = 1_000_000;
  /** How far wall time is ahead of what `ms` says. */
  unixJumpMs = 0;
  decider: FleetDecider;
  readonly agents: TestAgent[] = [];
  /** Everything the decider said, oldest first. */
  readonly said: (DeciderEffect & { readonly atMs: number })[] = [];
  /** The newest verdict that was pushed. */
  verdict: StoredVerdict | undefined;
  stored: StoredVerdict | undefined;
  /** False: writes wait for `answerWrite`. */
  storeAnswers = true;
  /** False: nobody answers polls. */
  answersPolls = true;
  readonly key = KEY;

  constructor(
    private readonly use: BreakerSettings = settings(),
    readonly token = 7,
  ) {
    this.decider = createDecider({ era: 1, token, resume: [], now: this.now });
    this.setRule(use);
    this.advance(1_000);
  }

  get now(): Now {
    return { ms: this.ms, unixMs: START_UNIX_MS + this.ms + this.unixJumpMs };
  }

  setRule(use: BreakerSettings | undefined): void {
    const { namespace, policy } = KEY;
    const rule = use && { namespace, policy, settings: use };
    this.run(this.decider.setRule({ namespace, policy }, rule, this.now));
  }

  add(count: number, incarnation = 'i1'): TestAgent[] {
    const added: TestAgent[] = [];
    for (let index = 0; index < count; index += 1) {
      const agent = new TestAgent(`${this.agents.length}`, incarnation, this);
      this.agents.push(agent);
      added.push(agent);
      this.up(agent);
    }
    return added;
  }

  up(agent: TestAgent): void {
    const labels = { 'bulwark.dev/zone': agent.zone };
    const { id, incarnation } = agent;
    this.run(
      this.decider.agentUp({ id, incarnation, namespace: 'shop', service: 'storefront', labels }, this.now),
    );
  }

  down(agent: TestAgent): void {
    this.run(this.decider.agentDown(agent, this.now));
  }

  report(agent: TestAgent, pollId = 0): void {
    this.deliver(agent, agent.report(this.key, this.verdict, pollId));
  }

  deliver(agent: TestAgent, report: AgentReport): void {
    this.run(this.decider.report(agent, report, this.now));
  }

  reportAll(): void {
    for (const agent of this.agents) this.report(agent);
  }

  force(forced: Forced | undefined): void {
    this.run(this.decider.force(this.key, forced, this.now));
  }

  /** Lets time pass, waking the decider exactly when it asks. */
  advance(ms: number): void {
    const untilMs = this.ms + ms;
    for (let wakeMs = this.decider.wakeAtMs(); wakeMs <= untilMs; wakeMs = this.decider.wakeAtMs()) {
      this.ms = Math.max(this.ms, wakeMs);
      this.run(this.decider.tick(this.now));
    }
    this.ms = untilMs;
  }

  /** The host's own wake-up, which comes once a second whatever is due. */
  tick(): void {
    this.run(this.decider.tick(this.now));
  }

  answerWrite(ok = true): void {
    const write = this.said.findLast((effect) => effect.kind === 'write');
    if (write === undefined) throw new Error('nothing was written');
    if (ok) this.stored = write.verdict;
    this.run(this.decider.written(this.key, write.verdict.version, ok, this.now));
  }

  /** Another decider takes over what is stored, after a pause in which nobody decided. */
  restart(token: number, pauseMs = 0): void {
    this.ms += pauseMs;
    const resume = this.stored === undefined ? [] : [this.stored];
    this.decider = createDecider({ era: 1, token, resume, now: this.now });
    this.setRule(this.use);
    for (const agent of this.agents) this.up(agent);
    this.run(this.decider.tick(this.now));
  }

  get view(): KeyView {
    const [view] = this.decider.views('shop', this.now);
    if (view === undefined) throw new Error('no view');
    return view;
  }

  get state(): string {
    return this.decider.views('shop', this.now)[0]?.verdict?.state ?? 'none';
  }

  of<K extends DeciderEffect['kind']>(kind: K): (Extract<DeciderEffect, { kind: K }> & { atMs: number })[] {
    return this.said.filter(
      (effect): effect is Extract<DeciderEffect, { kind: K }> & { atMs: number } => effect.kind === kind,
    );
  }

  private run(effects: readonly DeciderEffect[]): void {
    for (const effect of effects) {
      this.said.push({ ...effect, atMs: this.ms });
      if (effect.kind === 'push') this.verdict = effect.verdict;
      if (effect.kind === 'write' && this.storeAnswers) {
        this.stored = effect.verdict;
        this.run(this.decider.written(this.key, effect.verdict.version, true, this.now));
      }
      if (effect.kind === 'poll' && this.answersPolls) {
        for (const id of effect.agents) {
          const agent = this.agents.find((one) => one.id === id);
          if (agent !== undefined) this.report(agent, effect.pollId);
        }
      }
    }
  }
}

/** Ten failures of the first two agents within half a second, the last one at the world's present time then. */
export function trip(world: World): void {
  const [one, two] = world.agents;
  if (one === undefined || two === undefined) throw new Error('a trip needs two agents');
  for (let pair = 0; pair < 5; pair += 1) {
    world.advance(pair === 0 ? 0 : 100);
    for (const agent of [one, two]) world.report(agent.fail());
  }
}

/** All agents had calls rejected just now. */
export function demand(world: World): void {
  for (const agent of world.agents) world.report(agent.reject());
}

/** Trips, and lets the cooldown pass while all agents have demand. */
export function tripToProbe(world: World): void {
  trip(world);
  passCooldown(world);
}

/** From open to the first permit. */
export function passCooldown(world: World): void {
  world.advance((world.verdict?.cooldownMs ?? 0) - 1);
  demand(world);
  world.advance(1);
}

/** The agent that holds the present permit. */
export function holderOf(world: World): TestAgent {
  const holder = world.agents.find(({ id }) => id === world.verdict?.permit?.agent);
  if (holder === undefined) throw new Error('nobody holds a permit');
  return holder;
}

/** The holder reports how its probe ended. */
export function endProbe(world: World, outcome: ProbeResult['outcome'], calls = 1): void {
  const holder = holderOf(world);
  if (world.verdict === undefined) return;
  if (outcome === 'success') holder.succeed(calls);
  if (outcome === 'failure') holder.fail();
  holder.probe = { version: world.verdict.version, outcome, calls };
  world.report(holder);
}

/** Every agent reports these counts of the present step. */
export function stepCounts(world: World, counts: Partial<StepCounts>): void {
  for (const agent of world.agents) {
    agent.step = { offered: 100, admitted: 10, successes: 0, failures: 0, slow: 0, ...counts };
    world.report(agent);
  }
}
