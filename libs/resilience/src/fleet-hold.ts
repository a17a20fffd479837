import type { ProbeReport, StepReport } from './gate-counters.js';
import type { OutcomeKind } from './outcome.js';
import { Permit, type Refusal } from './permit.js';
import { ShareAdmission } from './share-admission.js';
import type { FleetVerdict } from './verdict.js';

/**
 * One verdict of the fleet in force here, and what was done under it: the probe calls it allows, the share it admits.
 * A newer version makes a new hold; an equal one only lives longer.
 *
 * A fleet permit is spent by being claimed: a call that then ends without an outcome (cancelled, refused by the
 * bulkhead, neutral) reports `none`, and is not used again here, since the decider gives it elsewhere.
 */
export class FleetHold {
  private readonly admission: ShareAdmission | undefined;
  private readonly permitUntilMs: number;
  private claimed = 0;
  private ended = 0;
  private succeeded = 0;
  private failed = false;
  private without = false;
  private offered = 0;
  private admitted = 0;
  private readonly steps = { successes: 0, failures: 0, slow: 0 };

  constructor(
    readonly verdict: FleetVerdict,
    /** Time to live: the verdict is heeded before it. Moved by renewals. */
    public untilMs: number,
    start: { readonly phase: number; readonly nowMs: number },
  ) {
    this.permitUntilMs = start.nowMs + verdict.permitMs;
    this.admission =
      verdict.state === 'recovering' ? new ShareAdmission(verdict.share, start.phase) : undefined;
  }

  /** The fleet leaves this call to the local breaker. */
  get closed(): boolean {
    return this.verdict.state === 'closed';
  }

  /** Only while the verdict lives and is not closed. */
  admit(nowMs: number): Permit | Refusal {
    switch (this.verdict.state) {
      case 'half-open':
        if (!this.hasProbe(nowMs)) return { reason: 'breaker-half-open', retryAfterMs: undefined };
        this.claimed += 1;
        return new Permit('fleet-probe', 0, this.permitUntilMs, this.verdict);
      case 'recovering':
        this.offered += 1;
        if (this.admission?.offer() !== true) {
          return { reason: 'breaker-recovering', retryAfterMs: undefined };
        }
        this.admitted += 1;
        return new Permit('fleet-step', 0, Infinity, this.verdict);
      default:
        return { reason: 'breaker-open', retryAfterMs: this.retryAfterMs(nowMs) };
    }
  }

  wouldRefuse(nowMs: number): boolean {
    if (this.verdict.state === 'recovering') return false;
    return this.verdict.state !== 'half-open' || !this.hasProbe(nowMs);
  }

  isCurrent(permit: Permit, nowMs: number): boolean {
    return permit.verdict === this.verdict && permit.deadlineMs > nowMs;
  }

  complete(permit: Permit, outcome: { readonly kind: OutcomeKind; readonly slow: boolean }): void {
    if (permit.source === 'fleet-step') {
      if (outcome.kind === 'success') this.steps.successes += 1;
      else if (outcome.kind === 'failure') this.steps.failures += 1;
      if (outcome.kind !== 'ignored' && outcome.slow) this.steps.slow += 1;
      return;
    }
    this.ended += 1;
    if (outcome.kind === 'failure') this.failed = true;
    else if (outcome.kind === 'ignored') this.without = true;
    else this.succeeded += 1;
  }

  release(permit: Permit): void {
    if (permit.source === 'fleet-step') {
      this.admitted -= 1;
      this.admission?.giveBack();
      return;
    }
    this.ended += 1;
    this.without = true;
  }

  probeReport(nowMs: number): ProbeReport | undefined {
    const { version, permitCalls, state } = this.verdict;
    if (state !== 'half-open' || permitCalls === 0) return undefined;
    if (this.failed) return { version, outcome: 'failure', calls: this.ended };
    const neverStarted = this.claimed === 0 && nowMs >= this.permitUntilMs;
    if (this.without || neverStarted) return { version, outcome: 'none', calls: this.ended };
    if (this.succeeded === 0) return undefined;
    return { version, outcome: 'success', calls: this.succeeded };
  }

  stepReport(): StepReport | undefined {
    if (this.verdict.state !== 'recovering') return undefined;
    return { offered: this.offered, admitted: this.admitted, ...this.steps };
  }

  /** A probe that failed or ended without an outcome settles the permit: the rest of its calls are not made. */
  private hasProbe(nowMs: number): boolean {
    return (
      this.claimed < this.verdict.permitCalls && !this.failed && !this.without && nowMs < this.permitUntilMs
    );
  }

  private retryAfterMs(nowMs: number): number | undefined {
    const { cooldownMs } = this.verdict;
    if (cooldownMs <= 0) return undefined;
    return Math.max(0, Math.min(cooldownMs, this.openedMs + cooldownMs - nowMs));
  }

  private get openedMs(): number {
    return this.permitUntilMs - this.verdict.permitMs;
  }
}
