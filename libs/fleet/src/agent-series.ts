import type { VerdictVersion } from '@bulwark/resilience';
import type { AgentEntry } from './agent-roster.js';
import { BucketRing, type Amounts } from './bucket-ring.js';
import type { KeyCounts, LocalState, ProbeResult, StepCounts } from './contract.js';
import { JudgedCounts } from './judged-counts.js';

/** Everything that was ever counted, under one rule. Exact: what the agent said last. */
export interface Totals {
  successes: number;
  failures: number;
  slow: number;
  ignored: number;
  rejected: number;
}

/** Where new counts lie in the decider's own time, and which of them may be judged. */
export interface Placement {
  readonly nowMs: number;
  /** They were made in the span of this length that ends now. */
  readonly spanMs: number;
  readonly sequence: number;
  /** This agent's counters are known from their beginning: an unknown one was zero. */
  readonly sinceBirth: boolean;
  /** The rule whose counts are judged. */
  readonly rule: string;
  /** Nothing older is judged. */
  readonly judgeFromMs: number;
  /** A longer span says too little of when its counts were made: they are accounted, not judged. */
  readonly longestSpanMs: number;
}

/** What a report added. */
export interface Added {
  /** Under the judged rule: something that can bring a trip nearer. */
  readonly bad: boolean;
  readonly any: boolean;
}

const NOTHING: Added = { bad: false, any: false };
const RULES_KEPT = 8;
const RECENT_BUCKET_MS = 500;
/** Rates for people and for choosing who probes. */
export const RECENT_MS = 10_000;

/**
 * What one incarnation of one agent said of one breaker key. Counters are cumulative, so a report that comes twice,
 * late, or never changes nothing: only the difference to the newest one heard is new.
 */
export class AgentSeries {
  judged: JudgedCounts;
  /** Successes, failures, rejected calls under all rules. */
  private readonly recent = new BucketRing(RECENT_BUCKET_MS, RECENT_MS / RECENT_BUCKET_MS + 1);
  private readonly rules = new Map<string, Totals>();
  private sequence = 0;
  /** The rule of its newest report. */
  rule = '';
  reportedMs = -Infinity;
  /** Last report with an outcome, or with any call at all: offered, rejected or ended. */
  outcomeMs = -Infinity;
  demandMs = -Infinity;
  /** The run of failures this agent is in, under the judged rule; 0 = its last outcome was a success. */
  runFailures = 0;
  runSinceMs = 0;
  localState: LocalState = 'unknown';
  inForce: VerdictVersion | undefined;
  probe: ProbeResult | undefined;
  step: { readonly version: VerdictVersion; readonly counts: StepCounts } | undefined;

  constructor(
    readonly agent: AgentEntry,
    windowMs: number,
    /** The agent is gone for good: takes this series out of its key. */
    readonly leave: () => void,
  ) {
    this.judged = new JudgedCounts(windowMs);
  }

  /** Another rule, or a fresh start: nothing heard so far is judged any more. */
  restart(windowMs: number): void {
    this.judged = new JudgedCounts(windowMs);
    this.runFailures = 0;
  }

  /** Cumulative counts under a rule, exactly as the agent said last. */
  totals(rule: string): Readonly<Totals> | undefined {
    return this.rules.get(rule);
  }

  /** Takes a report; an older one than the last is no news. */
  take(counts: KeyCounts, placement: Placement): Added {
    if (placement.sequence <= this.sequence) return NOTHING;
    this.sequence = placement.sequence;
    this.reportedMs = placement.nowMs;
    this.rule = counts.rule;
    this.localState = counts.localState;
    this.inForce = counts.inForce;
    this.probe = counts.probe;
    if (counts.step !== undefined && counts.inForce !== undefined) {
      this.step = { version: counts.inForce, counts: counts.step };
    }
    this.noteOutcome(counts, placement.nowMs);
    const added = this.difference(counts, placement.sinceBirth);
    const judged = counts.rule === placement.rule;
    if (judged) this.noteRun(counts, placement.nowMs);
    if (added === undefined) return NOTHING;
    this.noteActivity(added, placement);
    if (judged) this.place(added, counts, placement);
    return {
      bad: judged && (added.failures > 0 || added.slow > 0),
      any: added.successes > 0 || added.failures > 0,
    };
  }

  /** Sums of the last ten seconds; `third` is the rejected calls. */
  recentSum(nowMs: number): Amounts {
    const sum = { successes: 0, failures: 0, third: 0 };
    this.recent.sum(RECENT_MS, nowMs, sum);
    return sum;
  }

  /** Undefined: the counters have no beginning that is known here, so the report is where they begin. */
  private difference(counts: KeyCounts, sinceBirth: boolean): Totals | undefined {
    const former = this.rules.get(counts.rule);
    const { successes, failures, slow, ignored, rejected } = counts;
    this.rules.set(counts.rule, { successes, failures, slow, ignored, rejected });
    this.forgetRules(counts.rule);
    if (former === undefined && !sinceBirth) return undefined;
    const added = {
      successes: successes - (former?.successes ?? 0),
      failures: failures - (former?.failures ?? 0),
      slow: slow - (former?.slow ?? 0),
      ignored: ignored - (former?.ignored ?? 0),
      rejected: rejected - (former?.rejected ?? 0),
    };
    // Counters that went back began anew: a rule that the agent had forgotten.
    return Math.min(added.successes, added.failures, added.slow, added.ignored, added.rejected) < 0
      ? undefined
      : added;
  }

  private forgetRules(present: string): void {
    if (this.rules.size <= RULES_KEPT) return;
    for (const rule of this.rules.keys()) {
      if (rule === present) continue;
      this.rules.delete(rule);
      return;
    }
  }

  private noteRun(counts: KeyCounts, nowMs: number): void {
    this.runFailures = counts.runFailures;
    this.runSinceMs = nowMs - counts.runFirstFailureAgeMs;
  }

  private noteOutcome(counts: KeyCounts, nowMs: number): void {
    const successMs = nowMs - (counts.lastSuccessAgeMs ?? Infinity);
    const failureMs = nowMs - (counts.runFailures > 0 ? counts.runFirstFailureAgeMs : Infinity);
    this.outcomeMs = Math.max(this.outcomeMs, successMs, failureMs);
  }

  private noteActivity(added: Totals, { nowMs, spanMs }: Placement): void {
    const { successes, failures, ignored, rejected } = added;
    if (successes + failures > 0) this.outcomeMs = nowMs;
    if (successes + failures + ignored + rejected === 0) return;
    this.demandMs = nowMs;
    this.recent.add(Math.max(0, nowMs - spanMs), nowMs, { successes, failures, third: rejected });
  }

  /**
   * Spreads new counts over the time they were made in. The run tells more than the span: its failures lie after its
   * first one, and all successes before the last one.
   */
  private place(added: Totals, counts: KeyCounts, placement: Placement): void {
    const { nowMs, spanMs, longestSpanMs } = placement;
    if (spanMs > longestSpanMs) return;
    const fromMs = Math.max(0, nowMs - spanMs);
    const run = Math.min(added.failures, counts.runFailures);
    const runFromMs = Math.max(fromMs, nowMs - counts.runFirstFailureAgeMs);
    const successToMs = Math.max(fromMs, nowMs - (counts.lastSuccessAgeMs ?? 0));
    const before = added.failures - run;
    // Slow ones are a part of both; which, nobody said.
    const ended = added.successes + added.failures;
    const slowOf = (part: number): number => (ended === 0 ? 0 : (added.slow * part) / ended);
    const { successes } = added;
    const earlier = { successes, failures: before, third: slowOf(successes + before) };
    if (successes + before > 0) this.judge(fromMs, successToMs, earlier, placement.judgeFromMs);
    const later = { successes: 0, failures: run, third: slowOf(run) };
    if (run > 0) this.judge(runFromMs, nowMs, later, placement.judgeFromMs);
  }

  /** Leaves out the part before `judgeFromMs`. */
  private judge(fromMs: number, toMs: number, amounts: Amounts, judgeFromMs: number): void {
    if (toMs < judgeFromMs) return;
    if (fromMs >= judgeFromMs) {
      this.judged.add(fromMs, toMs, amounts);
      return;
    }
    const part = (toMs - judgeFromMs) / (toMs - fromMs);
    this.judged.add(judgeFromMs, toMs, {
      successes: amounts.successes * part,
      failures: amounts.failures * part,
      third: amounts.third * part,
    });
  }
}
