import type { BreakerSettings, VerdictVersion } from '@bulwark/resilience';

/** A breaker key of the fleet. `key` is stable text such as "target" or "operation=GET /v1/recs". */
export interface BreakerKey {
  readonly namespace: string;
  readonly policy: string;
  readonly key: string;
}

/** One start of one agent. */
export interface AgentIdentity {
  /** "namespace/service/instance". */
  readonly id: string;
  readonly incarnation: string;
  readonly namespace: string;
  readonly service: string;
  readonly labels: Readonly<Record<string, string>>;
}

export type LocalState = 'closed' | 'open' | 'half-open' | 'unknown';

/** Cumulative counters of one key under one rule since the incarnation began. See proto/bulwark/v1/fleet.proto. */
export interface KeyCounts {
  readonly key: BreakerKey;
  readonly rule: string;
  readonly successes: number;
  readonly failures: number;
  readonly slow: number;
  readonly ignored: number;
  readonly rejected: number;
  readonly runFailures: number;
  readonly runFirstFailureAgeMs: number;
  readonly successesSinceFailure: number;
  /** Absent when there never was one. */
  readonly lastSuccessAgeMs: number | undefined;
  readonly localState: LocalState;
  /** The verdict the agent has in force; absent when none. */
  readonly inForce: VerdictVersion | undefined;
  readonly probe: ProbeResult | undefined;
  readonly step: StepCounts | undefined;
}

export interface ProbeResult {
  readonly version: VerdictVersion;
  readonly outcome: 'success' | 'failure' | 'none';
  /** Calls of this permit that ended so far. */
  readonly calls: number;
}

/** Cumulative within one recovery step: one verdict version. */
export interface StepCounts {
  readonly offered: number;
  readonly admitted: number;
  readonly successes: number;
  readonly failures: number;
  readonly slow: number;
}

export interface AgentReport {
  readonly incarnation: string;
  /**
   * 1 = the first of this incarnation, so that all its counts lie within `coversMs`. When the first report a decider
   * sees is a later one, its counts are a baseline: accounted, not judged.
   */
  readonly sequence: number;
  /** Monotonic milliseconds that the new counts cover, ending at receipt. */
  readonly coversMs: number;
  readonly keys: readonly KeyCounts[];
  /** 0 = not an answer to a poll. */
  readonly pollId: number;
}

export type FleetState = 'closed' | 'open' | 'half-open' | 'recovering';

export interface Permit {
  /** Agent id. */
  readonly agent: string;
  readonly incarnation: string;
  readonly calls: number;
  readonly timeoutMs: number;
}

/** What a person forced. Its life is counted by whoever decides and by each agent, on monotonic time. */
export interface Forced {
  readonly state: 'open' | 'closed';
  /** Life left when this verdict was written. */
  readonly remainingMs: number;
  readonly by: string;
  readonly reason: string;
}

/** What is kept in the store for one key: enough for another decider to go on. JSON, no monotonic times. */
export interface StoredVerdict {
  readonly key: BreakerKey;
  readonly version: VerdictVersion;
  readonly state: FleetState;
  readonly share: number;
  /** Index into recovery.steps while recovering; -1 elsewhere. */
  readonly step: number;
  readonly permit: Permit | undefined;
  readonly forced: Forced | undefined;
  readonly reason: string;
  /** A sentence with the numbers behind the last transition. */
  readonly message: string;
  /** Cooldown of the present or last open period. */
  readonly cooldownMs: number;
  /** Trips since the last full close, for growing cooldowns. */
  readonly trips: number;
  /** Wall time of the last change of state, Unix milliseconds; for people only. */
  readonly sinceUnixMs: number;
  /** Wall time of this write, Unix milliseconds: the age of the record across a restart, for `forced`. */
  readonly writtenUnixMs: number;
  /** Newest last, at most 20. */
  readonly transitions: readonly Transition[];
}

export interface Transition {
  readonly unixMs: number;
  readonly from: FleetState;
  readonly to: FleetState;
  readonly reason: string;
  readonly message: string;
  readonly epoch: number;
  /** Share admitted after it, for recovery steps. */
  readonly share: number;
}

/** The breaker of one policy as the fleet judges it. Absent from the decider = the policy has no fleet breaker. */
export interface FleetRule {
  readonly namespace: string;
  readonly policy: string;
  readonly settings: BreakerSettings;
}

/** What the host must do. The decider itself does nothing but compute. */
export type DeciderEffect =
  /** Store it (comparing claim and former verdict), then call `written`; push only after that. */
  | { readonly kind: 'write'; readonly verdict: StoredVerdict }
  /**
   * Send to all agents of the key, now. Also used for renewals. `permit.timeoutMs` and `forced.remainingMs` are what is
   * left at this moment, so they may be smaller than in the record that was written.
   */
  | { readonly kind: 'push'; readonly verdict: StoredVerdict; readonly ttlMs: number }
  /** The key is no more: agents drop its verdict, the store its record. */
  | { readonly kind: 'remove'; readonly key: BreakerKey }
  /** Ask these agents to report the key at once. */
  | {
      readonly kind: 'poll';
      readonly pollId: number;
      readonly key: BreakerKey;
      readonly agents: readonly string[];
    }
  /** For logs and metrics. */
  | { readonly kind: 'notice'; readonly key: BreakerKey; readonly word: string; readonly message: string };

/** Two clocks: `ms` is monotonic and decides; `unixMs` is for people only. */
export interface Now {
  readonly ms: number;
  readonly unixMs: number;
}

/** Live counts of one key, for people. Nothing here is stored. */
export interface KeyView {
  readonly key: BreakerKey;
  readonly verdict: StoredVerdict | undefined;
  readonly agents: readonly AgentKeyView[];
  /** Over the last 10 s, all rules together. */
  readonly callsPerSecond: number;
  /** 0..1; undefined = no calls. */
  readonly failureRatio: number | undefined;
  readonly rejectedPerSecond: number;
  /** Agents whose own breaker is not closed while the fleet's is: a localised fault. */
  readonly localised: readonly string[];
  /** Why there is no verdict or no progress: "below minimumCalls", "waiting for demand", …; undefined = nothing to say. */
  readonly note: string | undefined;
}

export interface AgentKeyView {
  readonly agent: string;
  readonly zone: string | undefined;
  readonly localState: LocalState;
  readonly inForce: VerdictVersion | undefined;
  /** These three over the last 10 s, all rules together. */
  readonly successes: number;
  readonly failures: number;
  readonly rejected: number;
}

/** The pure decider over any number of keys. Every method is synchronous; answers say what to do next. */
export interface FleetDecider {
  /** Present rule of a policy; `undefined` removes it. A changed `ruleHash` starts new counts, not a new state. */
  setRule(
    policy: { namespace: string; policy: string },
    rule: FleetRule | undefined,
    now: Now,
  ): DeciderEffect[];
  agentUp(agent: AgentIdentity, now: Now): DeciderEffect[];
  agentDown(agent: { id: string; incarnation: string }, now: Now): DeciderEffect[];
  report(agent: { id: string; incarnation: string }, report: AgentReport, now: Now): DeciderEffect[];
  /**
   * The store took the write, or refused it: then this decider has lost its claim and says nothing more of the key, not
   * even renewals. A store that does not answer is neither: retry, and call this when it is known. While a write is in
   * flight the key changes no further.
   */
  written(key: BreakerKey, version: VerdictVersion, ok: boolean, now: Now): DeciderEffect[];
  /** A person forces or releases (`undefined`) a key. While forced, nothing automatic changes the key. */
  force(key: BreakerKey, forced: Forced | undefined, now: Now): DeciderEffect[];
  /** Lets time pass: cooldowns, permits, steps, renewals, polls. Call at `wakeAtMs()` or earlier. */
  tick(now: Now): DeciderEffect[];
  /** Monotonic time of the next thing to do; Infinity = nothing. */
  wakeAtMs(): number;
  /** Rates are over the 10 s before `now`; absent: before the last event. */
  views(namespace?: string, now?: Now): KeyView[];
}

export interface DeciderOptions {
  readonly era: number;
  /** Fencing token: create revision of the claim. */
  readonly token: number;
  /**
   * Verdicts found in the store: gone on with under this token, nothing tripped before one full report interval. Give the
   * rules (`setRule`) next, `undefined` for policies that are no more: a verdict waits until its policy's rule is known.
   */
  readonly resume: readonly StoredVerdict[];
  readonly now: Now;
}
