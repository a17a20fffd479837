import type { BreakerSettings } from '@bulwark/resilience';
import { Chance } from './chance.js';
import { Invariants } from './invariants.js';
import { breaker, CONSECUTIVE } from './rules.js';
import type { SimAgent } from './sim-agent.js';
import { SimFleet } from './sim-fleet.js';

export interface RunResult {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly trips: number;
  readonly closes: number;
  /** Time from the end of all faults to closed; undefined = it never was open then. */
  readonly healedMs: number | undefined;
}

const FAULTS_MS = 45_000;
const GIVE_UP_MS = 240_000;

/**
 * One random fleet under random faults, wholly given by its seed: the dependency fails and recovers, agents are killed,
 * paused and cut off, reports get lost, doubled and overtaken, deciders are replaced (some without knowing), people force.
 * Then all is well, and the breaker must close in bounded time.
 */
export function randomRun(seed: number): RunResult {
  const chance = new Chance(seed);
  const settings = randomSettings(chance);
  const agents = chance.whole(2, 8);
  const callsPerSecond = chance.pick([2, 5, 10]);
  const lossy = chance.is(0.5);
  const options = {
    settings,
    agents,
    callsPerSecond,
    chance,
    lost: lossy ? 0.03 : 0,
    doubled: lossy ? 0.05 : 0,
    cancelled: chance.pick([0, 0, 0.05]),
    latencyMs: chance.pick([2, 10]),
  };
  const checks: Invariants = new Invariants(() => fleet, settings);
  const fleet: SimFleet = new SimFleet(options, checks);
  const script = new FaultScript(fleet, chance, checks);
  checks.permitsMayBeLost = lossy || options.cancelled > 0 || settings.probe.successesToClose > 1;
  script.plan();
  runTo(fleet, FAULTS_MS);
  script.heal();
  const healedMs = waitForClosed(fleet, checks, healLimit(settings, agents * callsPerSecond));
  const { violations, trips, closes } = checks;
  return { seed, violations, trips, closes, healedMs };
}

function runTo(fleet: SimFleet, untilMs: number): void {
  fleet.queue.runUntil(untilMs);
}

function waitForClosed(fleet: SimFleet, checks: Invariants, limitMs: number): number | undefined {
  const isClosed = (): boolean => (fleet.store.verdict?.state ?? 'closed') === 'closed';
  // What failed before may still trip while it is in the longest window.
  fleet.queue.runUntil(FAULTS_MS + 11_000);
  const { trips } = checks;
  if (isClosed()) {
    fleet.queue.runUntil(FAULTS_MS + 21_000);
    if (checks.trips > trips) checks.broken('tripped on a healthy dependency');
    return undefined;
  }
  const beganMs = fleet.queue.nowMs;
  while (!isClosed() && fleet.queue.nowMs < FAULTS_MS + GIVE_UP_MS)
    fleet.queue.runUntil(fleet.queue.nowMs + 100);
  const tookMs = fleet.queue.nowMs - beganMs;
  if (!isClosed() || tookMs > limitMs) {
    checks.broken(
      `healthy and with demand, but closed after ${tookMs} ms only (limit ${Math.round(limitMs)})`,
    );
  }
  return tookMs;
}

/** A whole cooldown, some lost permits, and for each step the time that its least number of calls takes at its share. */
function healLimit(settings: BreakerSettings, callsPerSecond: number): number {
  const { cooldown, recovery, probe } = settings;
  const steps = recovery.steps.map((share) =>
    Math.max(recovery.stepForMs, (1000 * 25) / (callsPerSecond * share)),
  );
  const probing = probe.successesToClose * 10_000;
  return cooldown.maxMs + probing + steps.reduce((sum, ms) => sum + ms + 1_500, 0) + 10_000;
}

function randomSettings(chance: Chance): BreakerSettings {
  const windowMs = chance.pick([1_000, 2_000, 5_000, 10_000]);
  const rate: BreakerSettings['trip'] = {
    failureRate: {
      ratio: chance.pick([0.3, 0.5, 0.8]),
      minimumCalls: chance.pick([5, 10, 20]),
      window: { ms: windowMs },
    },
  };
  const trip = chance.pick([CONSECUTIVE, rate, { ...CONSECUTIVE, ...rate }]);
  return breaker(trip, {
    cooldown: { initialMs: chance.pick([1_000, 2_000]), maxMs: 8_000, factor: chance.pick([1, 2]) },
    probe: {
      concurrent: chance.pick([1, 1, 2]),
      successesToClose: chance.pick([1, 1, 3]),
      timeoutMs: chance.pick([500, 1_000]),
    },
    recovery: { steps: chance.pick([[], [0.5], [0.1, 0.25, 0.5]]), stepForMs: chance.pick([1_000, 2_000]) },
  });
}

class FaultScript {
  private healed = false;

  constructor(
    private readonly fleet: SimFleet,
    private readonly chance: Chance,
    private readonly checks: Invariants,
  ) {}

  plan(): void {
    const { chance, fleet } = this;
    for (let atMs = chance.between(1_000, 5_000); atMs < FAULTS_MS; atMs += chance.between(2_000, 12_000)) {
      const failing = chance.pick([0, 0, 0.05, 0.3, 0.7, 1, 1]);
      this.at(atMs, () => (fleet.dependency.failing = failing));
    }
    for (let left = chance.whole(0, 5); left > 0; left -= 1) {
      this.at(chance.between(1_000, FAULTS_MS - 5_000), () => this.hurt(chance.pick(fleet.agents)));
    }
    for (let left = chance.pick([0, 0, 1, 2]); left > 0; left -= 1) {
      this.at(chance.between(1_000, FAULTS_MS - 2_000), () => {
        this.checks.permitsMayBeLost = true;
        fleet.replaceDecider(chance.is(0.6));
      });
    }
    if (chance.is(0.25)) this.at(chance.between(1_000, FAULTS_MS - 10_000), () => this.force());
  }

  /** From now on all is well. */
  heal(): void {
    const { fleet } = this;
    this.healed = true;
    fleet.dependency.failing = 0;
    fleet.dependency.cutOff.clear();
    for (const agent of fleet.agents) {
      if (!agent.alive) this.bringBack(agent);
      else {
        agent.resume();
        if (!agent.connected) fleet.connect(agent);
      }
    }
    fleet.host.force(undefined);
  }

  private at(ms: number, task: () => void): void {
    this.fleet.queue.after(ms, () => {
      if (!this.healed) task();
    });
  }

  private hurt(agent: SimAgent): void {
    const { chance, fleet, checks } = this;
    if (!agent.alive || !agent.connected || agent.isPaused) return;
    checks.permitsMayBeLost = true;
    switch (chance.pick(['kill', 'pause', 'cut', 'broken'] as const)) {
      case 'kill':
        agent.kill();
        this.at(chance.between(0, 100), () => fleet.disconnect(agent));
        this.at(chance.between(500, 6_000), () => this.bringBack(agent));
        return;
      case 'pause':
        agent.pause();
        this.at(chance.between(500, 20_000), () => agent.resume());
        return;
      case 'cut':
        fleet.disconnect(agent);
        this.at(chance.between(500, 15_000), () => fleet.connect(agent));
        return;
      case 'broken':
        fleet.dependency.cutOff.add(agent.index);
    }
  }

  private bringBack(agent: SimAgent): void {
    if (agent.alive) return;
    agent.restart();
    this.checks.truth.forgetAgent(agent.index);
    this.fleet.connect(agent);
  }

  private force(): void {
    const { chance, fleet } = this;
    const state = chance.pick(['open', 'closed'] as const);
    const remainingMs = chance.whole(1_000, 8_000);
    fleet.host.force({ state, remainingMs, by: 'someone', reason: 'a drill' });
    if (chance.is(0.5)) this.at(remainingMs / 2, () => fleet.host.force(undefined));
  }
}
