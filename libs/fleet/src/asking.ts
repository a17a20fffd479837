/**
 * Confirmation by asking. Agents report failures at once but successes about once a second, so what the decider has heard
 * is always biased towards failures: with forty per cent of calls failing, the last quarter second can look dead. Before a
 * decision against the dependency the agents that may know better are asked for their counters, once, and the decision is
 * taken on the complete counts: when all have answered or reported, or 40 ms later, so that dead or paused agents cannot
 * block it. A candidate that is not confirmed is dropped. At most one poll per key in 25 ms. When a dependency dies, answers
 * that were under way may refute the first candidates, so two of them cost nothing; a rule at exactly its boundary makes
 * candidates all the time, so from the third on the gap doubles with each one that fails, up to 1 s, until ten seconds
 * pass without a failed one.
 */
import type { AgentSeries } from './agent-series.js';

const ANSWER_MS = 40;
const GAP_MS = 25;
/** Candidates in a row that may fail before the gap grows. */
const FREE_FAILURES = 2;
const MAX_GAP_MS = 1_000;
const QUIET_MS = 10_000;
/** Who reported the key within this may have outcomes of it. */
const MAY_KNOW_MS = 10_000;

interface Question {
  readonly pollId: number;
  readonly deadlineMs: number;
  /** Agent ids. */
  readonly waiting: Set<string>;
}

export class Asking {
  private question: Question | undefined;
  private failures = 0;
  private notBeforeMs = -Infinity;
  private failedMs = -Infinity;

  get pollId(): number | undefined {
    return this.question?.pollId;
  }

  /** When an open question ends at the latest; Infinity = none is open. */
  get deadlineMs(): number {
    return this.question?.deadlineMs ?? Infinity;
  }

  /** When the next question may be asked. */
  get allowedMs(): number {
    return this.notBeforeMs;
  }

  /** Agents whose newest report is older than the candidate. */
  silent(series: readonly AgentSeries[], nowMs: number): string[] {
    return series
      .filter((one) => one.agent.up && one.reportedMs < nowMs && nowMs - one.reportedMs <= MAY_KNOW_MS)
      .map((one) => one.agent.identity.id);
  }

  ask(pollId: number, agents: readonly string[], nowMs: number): void {
    if (nowMs - this.failedMs > QUIET_MS) this.failures = 0;
    this.question = { pollId, deadlineMs: nowMs + ANSWER_MS, waiting: new Set(agents) };
    this.notBeforeMs = nowMs + GAP_MS;
  }

  /** An agent reported, or went away. */
  heard(agent: string): void {
    this.question?.waiting.delete(agent);
  }

  /** No more answers are worth waiting for. */
  isOver(nowMs: number): boolean {
    const { question } = this;
    return question !== undefined && (question.waiting.size === 0 || nowMs >= question.deadlineMs);
  }

  confirmed(): void {
    this.question = undefined;
  }

  refuted(nowMs: number): void {
    this.question = undefined;
    this.failedMs = nowMs;
    this.failures += 1;
    const gapMs = GAP_MS * 2 ** Math.max(0, this.failures - FREE_FAILURES);
    this.notBeforeMs = nowMs + Math.min(MAX_GAP_MS, gapMs);
  }
}
