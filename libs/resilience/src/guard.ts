import type { BreakerGate, GateChange, GateListener } from './breaker-gate.js';
import { Bulkhead, type BulkheadLimits } from './bulkhead.js';
import type { Attempt, CallAdapter, CallRequest, CallResult } from './call.js';
import { CallExecution } from './call-execution.js';
import type { CallTask } from './call-task.js';
import { CompiledPolicy } from './compiled-policy.js';
import type { EngineEvent, EventBody } from './events.js';
import { GateTable } from './gate-table.js';
import type { GuardShared } from './guard-shared.js';
import { type GuardTotals, newTotals } from './guard-totals.js';
import type { Host } from './host.js';
import { LastGoodCache } from './last-good-cache.js';
import { RetryBudget } from './retry-budget.js';
import type { BreakerSettings, GuardSettings } from './settings.js';
import { shadowCall } from './shadow-call.js';
import { SharedTimer } from './shared-timer.js';
import type { FleetVerdict } from './verdict.js';

export interface GuardOptions {
  readonly host: Host;
  readonly settings: GuardSettings;
  /** Makes the breaker key of a call from the breaker's `per`. Absent, or when it throws: "target" for every call. */
  readonly keyOf?: (request: CallRequest, per: readonly string[]) => string;
  /** Everything noteworthy, synchronously. May throw; then it is only counted. */
  readonly onEvent?: (event: EngineEvent) => void;
  /** A breaker key has something to report. Called for every attempt: keep it short. */
  readonly onChange?: (gate: BreakerGate, change: GateChange) => void;
  /** Breaker keys held, 1,000 by default. */
  readonly maxKeys?: number;
  /** Idle time after which a key may be forgotten when room is needed; 10 minutes by default. */
  readonly idleMs?: number;
  /** Answers remembered for last-good, 1,000 by default. */
  readonly maxLastGood?: number;
}

const NO_LIMIT: BulkheadLimits = { maxConcurrent: Infinity, maxQueued: 0 };

/** Executes calls under one policy. Any number of breaker keys, one bulkhead, one retry budget. */
export class Guard implements GuardShared, GateListener {
  readonly host: Host;
  readonly timer: SharedTimer;
  readonly bulkhead: Bulkhead;
  readonly totals: GuardTotals = newTotals();
  policy: CompiledPolicy;
  budget: RetryBudget | undefined;
  cache: LastGoodCache<unknown> | undefined;
  private table: GateTable | undefined;
  private liveAgents = 1;
  private slot: number | undefined;
  private drillUntilMs = -Infinity;
  private cappedToldMs = -Infinity;

  constructor(private readonly options: GuardOptions) {
    this.host = options.host;
    this.timer = new SharedTimer(options.host);
    this.policy = new CompiledPolicy(options.settings);
    this.bulkhead = new Bulkhead(NO_LIMIT);
    this.configure(options.settings);
  }

  get settings(): GuardSettings {
    return this.policy.settings;
  }

  /** Never rejects: how the call ended, failures included, is in the result. */
  call<T>(
    request: CallRequest,
    run: (attempt: Attempt) => Promise<T>,
    adapter: CallAdapter<T>,
  ): Promise<CallResult<T>> {
    return new Promise((settle) => this.start({ request, run, adapter, settle }));
  }

  /** A new generation in place: counts under the same rule, open breakers, permits and queue places survive. */
  update(settings: GuardSettings): void {
    this.policy = new CompiledPolicy(settings);
    this.configure(settings);
    this.emit({ type: 'updated', generation: settings.generation });
  }

  /** The breaker keys seen so far; none when the policy has no breaker. */
  *gates(): Iterable<BreakerGate> {
    if (this.settings.breaker !== undefined && this.table !== undefined) yield* this.table.all();
  }

  gate(key: string): BreakerGate | undefined {
    return this.settings.breaker === undefined ? undefined : this.table?.find(key);
  }

  /**
   * A verdict of the fleet for one key, called before or not. False = dropped: older than the one in force, no breaker
   * in the policy, or the cap on keys is reached.
   */
  applyVerdict(key: string, verdict: FleetVerdict): boolean {
    const nowMs = this.host.nowMs();
    const gate = this.settings.breaker === undefined ? undefined : this.table?.obtain(key, nowMs);
    if (gate?.applyVerdict(verdict, nowMs) !== true) return false;
    this.emit({ type: 'verdict', key, verdict });
    return true;
  }

  /** The fleet has no verdict for the key any more: the process's own breaker decides, as it was. */
  dropVerdict(key: string): void {
    this.table?.find(key)?.dropVerdict();
  }

  /** This agent's slot number at its replica: where its recovery shares begin. */
  setPhase(slot: number | undefined): void {
    this.slot = slot;
    this.table?.setPhase(slot);
  }

  /** Live agents of this service, which share the retry floor. */
  setShare(liveAgents: number): void {
    this.liveAgents = liveAgents;
    this.budget?.setShare(liveAgents);
  }

  /** For this long every call is rejected with `drill` (and falls back); 0 ends it. */
  drill(durationMs: number): void {
    this.drillUntilMs = durationMs > 0 ? this.host.nowMs() + durationMs : -Infinity;
  }

  /** Counts since the guard began; the object is live. */
  read(): Readonly<GuardTotals> {
    this.totals.inFlight = this.bulkhead.inFlight;
    this.totals.waiting = this.bulkhead.waiting;
    return this.totals;
  }

  /** Ends the guard's timer. Calls that still run lose their timeouts. */
  close(): void {
    this.timer.close();
  }

  /** For the guard's own calls. */
  gateFor(request: CallRequest, nowMs: number): BreakerGate | undefined {
    const { breaker } = this.policy.settings;
    if (breaker === undefined || this.table === undefined) return undefined;
    const gate = this.table.obtain(this.keyFor(request, breaker.per), nowMs);
    if (gate !== undefined) return gate;
    this.totals.withoutKey += 1;
    if (nowMs - this.cappedToldMs >= 1000) {
      this.cappedToldMs = nowMs;
      this.emit({ type: 'keys-capped', keys: this.table.size });
    }
    return undefined;
  }

  /** For the guard's own calls. */
  emit(event: EventBody): void {
    if (this.options.onEvent === undefined) return;
    try {
      this.options.onEvent({ policy: this.policy.label, ...event });
    } catch {
      this.totals.callbacksFailed += 1;
    }
  }

  /** For the guard's own calls. */
  callbackFailed(callback: string, error: unknown): void {
    this.totals.callbacksFailed += 1;
    this.emit({ type: 'callback-failed', callback, error });
  }

  /** For the guard's own gates. */
  changed(gate: BreakerGate, change: GateChange): void {
    if (this.options.onChange === undefined) return;
    try {
      this.options.onChange(gate, change);
    } catch (error) {
      this.callbackFailed('onChange', error);
    }
  }

  /** For the guard's own gates. */
  transition(gate: BreakerGate, transition: Parameters<GateListener['transition']>[1]): void {
    this.emit({ type: 'breaker-transition', key: gate.key, transition });
  }

  private keyFor(request: CallRequest, per: readonly string[]): string {
    if (this.options.keyOf === undefined) return 'target';
    try {
      return this.options.keyOf(request, per);
    } catch (error) {
      this.callbackFailed('keyOf', error);
      return 'target';
    }
  }

  private start<T>(task: CallTask<T>): void {
    const nowMs = this.host.nowMs();
    this.totals.calls += 1;
    if (this.policy.settings.mode === 'shadow') {
      shadowCall(this, task, nowMs);
      return;
    }
    const execution = new CallExecution(this, task, nowMs);
    if (nowMs < this.drillUntilMs) {
      execution.reject({ reason: 'drill', retryAfterMs: this.drillUntilMs - nowMs });
    } else {
      execution.begin();
    }
  }

  private configure(settings: GuardSettings): void {
    this.configureBreaker(settings.breaker);
    this.configureBudget(settings);
    this.configureCache();
    // Last: more room starts waiting calls at once, under the new settings.
    this.bulkhead.update(settings.mode === 'shadow' ? NO_LIMIT : (settings.bulkhead ?? NO_LIMIT));
  }

  private configureBreaker(breaker: BreakerSettings | undefined): void {
    if (breaker === undefined) return;
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
