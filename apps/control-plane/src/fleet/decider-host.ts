import type {
  AgentIdentity,
  AgentReport,
  BreakerKey,
  DeciderEffect,
  DeciderOptions,
  FleetDecider,
  FleetRule,
  Forced,
  KeyView,
  Now,
  StoredVerdict,
} from '@bulwark/fleet';
import type { Store } from '@bulwark/store';
import type { Logger } from '@bulwark/telemetry';
import { unavailable } from '../errors/api-error.js';
import { within } from '../server/closing.js';
import { VerdictWriter } from './verdict-writer.js';

export type CreateDecider = (options: DeciderOptions) => FleetDecider;

/** Where the decider's word goes. */
export interface DeciderAudience {
  push(verdict: StoredVerdict, ttlMs: number): void;
  remove(key: BreakerKey): void;
  poll(poll: { pollId: number; key: BreakerKey; agents: readonly string[] }): void;
}

export interface DeciderHostOptions {
  readonly createDecider: CreateDecider;
  readonly era: number;
  readonly claim: { readonly key: string; readonly createRevision: number; readonly lost: AbortSignal };
  readonly store: Store;
  /** Verdicts found in the store, with their mod revisions by store key. */
  readonly found: readonly StoredVerdict[];
  readonly foundRevisions: ReadonlyMap<string, number>;
  readonly audience: DeciderAudience;
  readonly logger: Logger;
  /** The store refused a write: somebody else decides. */
  fenced(): void;
}

/** Less than another replica waits for the answer. */
const FORCE_MS = 3_000;
/** A timer is never set further ahead: the decider's clock is this process's own, but timers may drift when paused. */
const MAX_SLEEP_MS = 1_000;

/**
 * Runs the pure decider: gives it time and events, carries out what it says. Nothing happens any more once the claim is
 * lost or `stop` was called.
 */
export class DeciderHost {
  private readonly decider: FleetDecider;
  private readonly writer: VerdictWriter;
  private readonly stopped = new AbortController();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: DeciderHostOptions) {
    const { claim, era, store } = options;
    claim.lost.addEventListener('abort', () => this.stop(), { signal: this.stopped.signal });
    this.decider = options.createDecider({
      era,
      token: claim.createRevision,
      resume: options.found,
      now: now(),
    });
    this.writer = new VerdictWriter({
      store,
      claim,
      signal: this.stopped.signal,
      found: options.foundRevisions,
      written: (verdict) => this.run((at) => this.decider.written(verdict.key, verdict.version, true, at)),
      removed: () => undefined,
      fenced: () => options.fenced(),
    });
  }

  get isStopped(): boolean {
    return this.stopped.signal.aborted;
  }

  /** To be called once the rules and agents that are known have been told. */
  start(): void {
    this.run((at) => this.decider.tick(at));
  }

  stop(): void {
    this.stopped.abort();
    clearTimeout(this.timer);
  }

  setRule(policy: { namespace: string; policy: string }, rule: FleetRule | undefined): void {
    this.run((at) => this.decider.setRule(policy, rule, at));
  }

  agentUp(agent: AgentIdentity): void {
    this.run((at) => this.decider.agentUp(agent, at));
  }

  agentDown(agent: AgentIdentity): void {
    this.run((at) => this.decider.agentDown(agent, at));
  }

  report(agent: AgentIdentity, report: AgentReport): void {
    this.run((at) => this.decider.report(agent, report, at));
  }

  /** Resolves when the change is stored. @throws ApiError 503 when that is not known in time */
  async force(key: BreakerKey, forced: Forced | undefined): Promise<void> {
    this.run((at) => this.decider.force(key, forced, at));
    const stored = await within(FORCE_MS, this.writer.idle());
    const hint = 'look at the breaker before you try again';
    if (this.isStopped) throw unavailable(`this replica ceased to decide meanwhile; ${hint}`);
    if (!stored) throw unavailable(`the store does not answer, and the change waits for it; ${hint}`);
  }

  views(namespace?: string): KeyView[] {
    return this.isStopped ? [] : this.decider.views(namespace, now());
  }

  /** Everything said so far is stored. */
  idle(): Promise<void> {
    return this.writer.idle();
  }

  private run(step: (at: Now) => DeciderEffect[]): void {
    if (this.isStopped) return;
    for (const effect of step(now())) this.carryOut(effect);
    this.sleep();
  }

  private carryOut(effect: DeciderEffect): void {
    const { audience, logger } = this.options;
    switch (effect.kind) {
      case 'write':
        return this.writer.write(effect.verdict);
      case 'push':
        return audience.push(effect.verdict, effect.ttlMs);
      case 'remove':
        this.writer.remove(effect.key);
        return audience.remove(effect.key);
      case 'poll':
        return audience.poll(effect);
      case 'notice':
        return logger.info({ ...effect.key, notice: effect.word }, effect.message);
    }
  }

  private sleep(): void {
    clearTimeout(this.timer);
    const waitMs = Math.max(0, this.decider.wakeAtMs() - performance.now());
    this.timer = setTimeout(
      () => this.run((at) => this.decider.tick(at)),
      Math.min(Math.ceil(waitMs), MAX_SLEEP_MS),
    );
  }
}

function now(): Now {
  return { ms: performance.now(), unixMs: Date.now() };
}
