import { notCallable } from './as-promise.js';
import type { BreakerGate } from './breaker-gate.js';
import type { Attempt, CallAdapter, CallRequest, CallResult, ValueAdapter } from './call.js';
import { CallExecution } from './call-execution.js';
import type { CallTask } from './call-task.js';
import { beginDirectly, type DirectCall } from './direct-call.js';
import { concluded } from './call-results.js';
import { GuardCore } from './guard-core.js';
import type { GuardOptions } from './guard-options.js';
import type { GuardTotals } from './guard-totals.js';
import type { GuardSettings } from './settings.js';
import { shadowCall } from './shadow-call.js';
import { callUnbounded } from './unbounded-call.js';
import type { FleetVerdict } from './verdict.js';

/** Executes calls under one policy: any number of breaker keys, one bulkhead, one retry budget, one last-good cache. */
export class Guard {
  private readonly core: GuardCore;
  private drillUntilMs = -Infinity;

  constructor(options: GuardOptions) {
    this.core = new GuardCore(options);
  }

  get settings(): GuardSettings {
    return this.core.policy.settings;
  }

  /** How the call ended, failures included, is in the result. Rejects only when `run` is no function. */
  call<T>(
    request: CallRequest,
    run: (attempt: Attempt) => Promise<T>,
    adapter: CallAdapter<T>,
  ): Promise<CallResult<T>> {
    if (typeof run !== 'function') return Promise.reject(notCallable(run));
    const direct = this.beginDirectly(request, adapter);
    if (direct !== undefined) return direct.start(run) as Promise<CallResult<T>>;
    return new Promise((settle) => this.start({ request, run, adapter, settle }));
  }

  /** The same for callers who want a value: what is not fresh is what `adapter.conclude` makes of it, or throws. */
  run<T>(request: CallRequest, run: (attempt: Attempt) => Promise<T>, adapter: ValueAdapter<T>): Promise<T> {
    if (typeof run !== 'function') return Promise.reject(notCallable(run));
    const { core } = this;
    if (core.policy.attemptMs === Infinity && this.drillUntilMs === -Infinity) {
      const unbounded = callUnbounded(core, request, run, adapter);
      if (unbounded !== undefined) return unbounded;
    }
    const direct = this.beginDirectly(request, adapter);
    if (direct === undefined) {
      const result = new Promise<CallResult<T>>((settle) => this.start({ request, run, adapter, settle }));
      return concluded(result, adapter);
    }
    direct.wantsValue = true;
    return direct.start(run) as Promise<T>;
  }

  /** A new generation in place: counts under the same rule, open breakers, permits and queue places survive. */
  update(settings: GuardSettings): void {
    this.core.update(settings);
  }

  /** The breaker keys in use, idle ones are forgotten; none when the policy has no breaker. */
  gates(): Iterable<BreakerGate> {
    return this.core.gates?.all(this.core.host.nowMs()) ?? [];
  }

  gate(key: string): BreakerGate | undefined {
    return this.core.gates?.find(key);
  }

  /**
   * A verdict of the fleet for one key, called before or not. False = dropped: older than the one in force, no breaker
   * in the policy, or the cap on keys is reached.
   */
  applyVerdict(key: string, verdict: FleetVerdict): boolean {
    const nowMs = this.core.host.nowMs();
    const gate = this.core.gates?.obtain(key, nowMs);
    if (gate === undefined) return false;
    const before = gate.revision;
    if (!gate.applyVerdict(verdict, nowMs)) return false;
    // A renewal changes nothing worth telling.
    if (gate.revision !== before) this.core.emit({ type: 'verdict', key, verdict });
    return true;
  }

  /** The fleet has no verdict for the key any more: the process's own breaker decides, as it was. */
  dropVerdict(key: string): void {
    this.core.gates?.find(key)?.dropVerdict();
  }

  /** This agent's slot number at its replica: where its recovery shares begin. */
  setPhase(slot: number | undefined): void {
    this.core.setPhase(slot);
  }

  /** Live agents of this service, which share the retry floor. */
  setShare(liveAgents: number): void {
    this.core.setShare(liveAgents);
  }

  /** For this long every call is rejected with `drill` (and falls back, but not to a simplified call); 0 ends it. */
  drill(durationMs: number): void {
    this.drillUntilMs = durationMs > 0 ? this.core.host.nowMs() + durationMs : -Infinity;
  }

  /**
   * Puts back an answer kept across a restart. Of unknown, negative or too great an age, or when a newer one is
   * there: not kept.
   */
  restoreLastGood(cacheKey: string, value: unknown, ageMs: number): void {
    this.core.cache?.restore(cacheKey, value, { ageMs, nowMs: this.core.host.nowMs() });
  }

  /** Counts since the guard began, and what is so now. The object is live. */
  read(): Readonly<GuardTotals> {
    const { totals, bulkhead, budget, host } = this.core;
    totals.inFlight = bulkhead.inFlight;
    totals.waiting = bulkhead.waiting;
    totals.limit = bulkhead.limit === Infinity ? undefined : bulkhead.limit;
    totals.retriesInWindow = budget?.used(host.nowMs()) ?? 0;
    return totals;
  }

  /** Ends the guard's timer. Calls that still run lose their timeouts. */
  close(): void {
    this.core.timer.close();
  }

  private beginDirectly<T>(request: CallRequest, adapter: CallAdapter<T>): DirectCall<T> | undefined {
    return this.drillUntilMs === -Infinity ? beginDirectly(this.core, request, adapter) : undefined;
  }

  private start<T>(task: CallTask<T>): void {
    const { core } = this;
    const nowMs = core.host.nowMs();
    core.totals.calls += 1;
    if (core.policy.settings.mode === 'shadow') {
      shadowCall(core, task, nowMs);
      return;
    }
    const execution = new CallExecution(core, task, nowMs);
    if (nowMs < this.drillUntilMs) {
      execution.reject({ reason: 'drill', retryAfterMs: this.drillUntilMs - nowMs }, nowMs);
    } else {
      execution.begin(nowMs);
    }
  }
}
