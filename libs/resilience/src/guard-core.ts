import type { BreakerGate, GateChange, GateListener } from './breaker-gate.js';
import { Bulkhead, type BulkheadLimits } from './bulkhead.js';
import type { CallRequest } from './call.js';
import { CompiledPolicy } from './compiled-policy.js';
import type { EventBody } from './events.js';
import { GateTable } from './gate-table.js';
import type { GuardOptions } from './guard-options.js';
import type { GuardShared } from './guard-shared.js';
import { type GuardTotals, newTotals } from './guard-totals.js';
import type { Host } from './host.js';
import { LastGoodCache } from './last-good-cache.js';
import type { LocalTransition } from './local-breaker.js';
import { RetryBudget } from './retry-budget.js';
import type { BreakerSettings, GuardSettings } from './settings.js';
import { SharedTimer } from './shared-timer.js';

const NO_LIMIT: BulkheadLimits = { maxConcurrent: Infinity, maxQueued: 0 };

/** How often the cap on keys is told of. */
const TELL_EVERY_MS = 1000;

/** The parts of one guard and how a generation configures them. What users and adapters give is called from here. */
export class GuardCore implements GuardShared, GateListener {
  readonly host: Host;
  readonly timer: SharedTimer;
  readonly bulkhead = new Bulkhead(NO_LIMIT);
  readonly totals: GuardTotals = newTotals();
  policy: CompiledPolicy;
  budget: RetryBudget | undefined;
  cache: LastGoodCache<unknown> | undefined;
  /** Kept when a generation has no breaker: a later one finds states and counts as they were. */
  private table: GateTable | undefined;
  private liveAgents = 1;
  private slot: number | undefined;
  private cappedToldMs = -Infinity;

  constructor(private readonly options: GuardOptions) {
    this.host = options.host;
    this.timer = new SharedTimer(options.host);
    this.policy = new CompiledPolicy(options.settings);
    this.configure(options.settings);
  }

  /** The gates of a policy that has a breaker. */
  get gates(): GateTable | undefined {
    return this.policy.breaker === undefined ? undefined : this.table;
  }

  update(settings: GuardSettings): void {
    this.policy = new CompiledPolicy(settings);
    this.configure(settings);
    this.emit({ type: 'updated', generation: settings.generation });
  }

  setPhase(slot: number | undefined): void {
    this.slot = slot;
    this.table?.setPhase(slot);
  }

  setShare(liveAgents: number): void {
    this.liveAgents = liveAgents;
    this.budget?.setShare(liveAgents);
  }

  gateFor(request: CallRequest, nowMs: number): BreakerGate | undefined {
    const { breaker } = this.policy;
    if (breaker === undefined || this.table === undefined) return undefined;
    const gate = this.table.obtain(this.keyFor(request, breaker.per), nowMs);
    if (gate !== undefined) return gate;
    this.totals.withoutKey += 1;
    if (nowMs - this.cappedToldMs >= TELL_EVERY_MS) {
      this.cappedToldMs = nowMs;
      this.emit({ type: 'keys-capped', keys: this.table.size });
    }
    return undefined;
  }

  emit(event: EventBody): void {
    if (this.options.onEvent === undefined) return;
    try {
      this.options.onEvent({ policy: this.policy.label, ...event });
    } catch {
      this.totals.callbacksFailed += 1;
    }
  }

  callbackFailed(callback: string, error: unknown): void {
    this.totals.callbacksFailed += 1;
    this.emit({ type: 'callback-failed', callback, error });
  }

  changed(gate: BreakerGate, change: GateChange): void {
    if (this.options.onChange === undefined) return;
    try {
      this.options.onChange(gate, change);
    } catch (error) {
      this.callbackFailed('onChange', error);
    }
  }

  transition(gate: BreakerGate, transition: LocalTransition): void {
    this.emit({ type: 'breaker-transition', key: gate.key, transition });
  }

  private keyFor(request: CallRequest, per: readonly string[]): string {
    if (this.options.keyOf === undefined || this.policy.oneKey) return 'target';
    try {
      return this.options.keyOf(request, per);
    } catch (error) {
      this.callbackFailed('keyOf', error);
      return 'target';
    }
  }

  private configure(settings: GuardSettings): void {
    if (settings.breaker !== undefined) this.configureBreaker(settings.breaker);
    this.configureBudget(settings);
    this.configureCache();
    // Last: more room starts waiting calls at once, under the new settings.
    this.bulkhead.update(settings.mode === 'shadow' ? NO_LIMIT : (settings.bulkhead ?? NO_LIMIT));
  }

  private configureBreaker(breaker: BreakerSettings): void {
    if (this.table !== undefined) {
      this.table.update(breaker);
      return;
    }
    this.table = new GateTable({
      settings: breaker,
      random: this.host.random,
      listener: this,
      maxKeys: this.options.maxKeys ?? 1000,
      idleMs: this.options.idleMs ?? 600_000,
    });
    this.table.setPhase(this.slot);
  }

  private configureBudget(settings: GuardSettings): void {
    const budget = settings.retry?.budget;
    if (budget === undefined) {
      this.budget = undefined;
      return;
    }
    if (this.budget === undefined) this.budget = new RetryBudget(budget);
    else this.budget.update(budget);
    this.budget.setShare(this.liveAgents);
  }

  private configureCache(): void {
    const { lastGood } = this.policy;
    if (lastGood === undefined) this.cache = undefined;
    else if (this.cache !== undefined) this.cache.update(lastGood);
    else this.cache = new LastGoodCache(lastGood, this.host.random, this.options.maxLastGood ?? 1000);
  }
}
