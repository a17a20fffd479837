import type { AgentIdentity, AgentReport, KeyCounts } from '@bulwark/fleet';
import type { Chance } from './chance.js';
import type { EventQueue } from './event-queue.js';
import { ReportTiming } from './report-timing.js';
import { KEY } from './rules.js';

/**
 * An agent whose calls are never stopped: calls arrive at random at a fixed rate and fail at random. Failures are events of
 * their own; successes between them are drawn when they matter, which gives the same counts as drawing each call (the
 * thinned parts of a Poisson process are independent Poisson processes) for a fraction of the work. Reports leave as a
 * real agent's do, so that what the decider hears is biased towards failures just as much.
 */
export class PoissonAgent {
  readonly identity: AgentIdentity;
  private readonly timing: ReportTiming;
  private successes = 0;
  private failures = 0;
  private drawnToMs = 0;
  private lastSuccessMs: number | undefined;
  private runFailures = 0;
  private runFromMs = 0;
  private era = 0;

  constructor(
    name: string,
    private readonly rule: string,
    private readonly queue: EventQueue,
    private readonly chance: Chance,
    private readonly load: { callsPerMs: number; failing: number },
    private readonly send: (report: AgentReport) => void,
  ) {
    this.identity = {
      id: `sim/caller/${name}`,
      incarnation: 'first',
      namespace: 'sim',
      service: 'caller',
      labels: {},
    };
    this.timing = new ReportTiming(queue, chance.uniform, (report) => this.report(report));
  }

  start(): void {
    this.drawnToMs = this.queue.nowMs;
    this.timing.changed();
    this.nextFailure();
  }

  poll(pollId: number): void {
    this.timing.now(pollId);
  }

  /** From now on this share of the calls fails. */
  setFailing(failing: number): void {
    this.drawSuccesses();
    this.load.failing = failing;
    this.era += 1;
    this.nextFailure();
  }

  private nextFailure(): void {
    const { era } = this;
    const waitMs = this.chance.exponential(this.load.callsPerMs * this.load.failing);
    if (waitMs === Infinity) return;
    this.queue.after(waitMs, () => {
      if (era === this.era) this.fail();
    });
  }

  private fail(): void {
    this.drawSuccesses();
    if (this.runFailures === 0) this.runFromMs = this.queue.nowMs;
    this.failures += 1;
    this.runFailures += 1;
    this.timing.urgent();
    this.nextFailure();
  }

  private drawSuccesses(): void {
    const { nowMs } = this.queue;
    const spanMs = nowMs - this.drawnToMs;
    this.drawnToMs = nowMs;
    const count = this.chance.poisson(spanMs * this.load.callsPerMs * (1 - this.load.failing));
    if (count === 0) return;
    this.successes += count;
    this.runFailures = 0;
    // The last of `count` points spread evenly over the span.
    this.lastSuccessMs = nowMs - spanMs * (1 - this.chance.uniform() ** (1 / count));
  }

  private report({
    sequence,
    coversMs,
    pollId,
  }: {
    sequence: number;
    coversMs: number;
    pollId: number;
  }): void {
    this.drawSuccesses();
    const { nowMs } = this.queue;
    const { runFailures, lastSuccessMs } = this;
    const counts: KeyCounts = {
      key: KEY,
      rule: this.rule,
      successes: this.successes,
      failures: this.failures,
      slow: 0,
      ignored: 0,
      rejected: 0,
      runFailures,
      runFirstFailureAgeMs: runFailures === 0 ? 0 : Math.floor(nowMs - this.runFromMs),
      successesSinceFailure: 0,
      lastSuccessAgeMs: lastSuccessMs === undefined ? undefined : Math.floor(nowMs - lastSuccessMs),
      localState: 'closed',
      inForce: undefined,
      probe: undefined,
      step: undefined,
    };
    this.send({ incarnation: 'first', sequence, coversMs, keys: [counts], pollId });
    this.timing.changed();
  }
}
