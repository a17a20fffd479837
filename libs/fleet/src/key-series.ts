import type { AgentEntry } from './agent-roster.js';
import { type Added, AgentSeries } from './agent-series.js';
import type { KeyCounts } from './contract.js';

/** Calm reports come about once a second, so windows shorter than this still get whole reports. */
const LEAST_SPAN_MS = 2_500;

/** What all agents said of one breaker key. */
export class KeySeries {
  /** In the order in which they came. */
  readonly all: AgentSeries[] = [];
  private readonly byAgent = new Map<AgentEntry, AgentSeries>();
  /** Newest success of any agent under the judged rule. */
  lastSuccessMs = -Infinity;
  /** Nothing older is judged. */
  judgeFromMs = -Infinity;
  /** Since when there are counts to judge; Infinity = none yet. */
  observedFromMs = Infinity;

  constructor(
    private rule: string,
    private windowMs: number,
  ) {}

  take(
    agent: AgentEntry,
    counts: KeyCounts,
    at: { readonly nowMs: number; readonly spanMs: number; readonly sequence: number },
  ): Added {
    const { nowMs, spanMs } = at;
    const series = this.byAgent.get(agent) ?? this.add(agent);
    const sinceBirth = agent.sinceBirth;
    if (counts.rule === this.rule) {
      const seenFromMs = sinceBirth ? nowMs - spanMs : nowMs;
      if (this.observedFromMs === Infinity) this.observedFromMs = Math.max(this.judgeFromMs, seenFromMs);
      const successMs = nowMs - (counts.lastSuccessAgeMs ?? Infinity);
      this.lastSuccessMs = Math.max(this.lastSuccessMs, successMs);
    }
    return series.take(counts, {
      ...at,
      sinceBirth,
      rule: this.rule,
      judgeFromMs: this.judgeFromMs,
      longestSpanMs: Math.max(this.windowMs, LEAST_SPAN_MS),
    });
  }

  remove(agent: AgentEntry): void {
    const series = this.byAgent.get(agent);
    if (series === undefined) return;
    this.byAgent.delete(agent);
    this.all.splice(this.all.indexOf(series), 1);
    agent.series.delete(series);
  }

  /** Judging begins anew: another rule, or the breaker has just closed. Cumulative counts go on. */
  restart(at: { readonly rule: string; readonly windowMs: number; readonly nowMs: number }): void {
    this.rule = at.rule;
    this.windowMs = at.windowMs;
    this.judgeFromMs = at.nowMs;
    this.observedFromMs = Infinity;
    this.lastSuccessMs = -Infinity;
    for (const series of this.all) series.restart(at.windowMs);
  }

  private add(agent: AgentEntry): AgentSeries {
    const series = new AgentSeries(agent, this.windowMs, () => this.remove(agent));
    this.byAgent.set(agent, series);
    this.all.push(series);
    agent.series.add(series);
    return series;
  }
}
