import type { BreakerSettings } from '@bulwark/resilience';
import { type AgentEntry, AgentRoster } from './agent-roster.js';
import type {
  BreakerKey,
  DeciderEffect,
  DeciderOptions,
  FleetDecider,
  FleetRule,
  KeyView,
  Now,
} from './contract.js';
import { DueQueue } from './due-queue.js';
import { type Desk, KeyBreaker, type Turn } from './key-breaker.js';
import { viewOf } from './key-view.js';
import { isDecided } from './scope.js';

/** A restarted decider trips nothing before every agent has reported once. */
const FULL_REPORT_MS = 1_000;
/** Keys of one policy; reports of more are not kept. Agents cap theirs far below. */
const MAX_KEYS = 10_000;
/** Epochs of removed keys that are remembered, so that a key that comes back is not older than what agents hold. */
const MAX_REMEMBERED = 10_000;
/** Keys that nobody calls any more are looked for this often. */
const SWEEP_MS = 10_000;
const HASHES_KEPT = 16;

interface PolicyKeys {
  rule: FleetRule | undefined;
  /** Hashes of the present rule and of former ones that made the same keys: who reports under these calls the key. */
  hashes: Set<string>;
  readonly keys: Map<string, KeyBreaker>;
  full: boolean;
}

/** Decides for any number of breaker keys. Pure: no clock, timer, randomness or I/O; see contract.ts for how to host it. */
export function createDecider(options: DeciderOptions): FleetDecider {
  return new Decider(options);
}

class Decider implements FleetDecider {
  private readonly policies = new Map<string, Map<string, PolicyKeys>>();
  private readonly roster = new AgentRoster();
  private readonly dueKeys = new DueQueue<KeyBreaker>();
  private readonly polls = new Map<number, KeyBreaker>();
  private readonly epochs = new Map<string, number>();
  private readonly desk: Desk;
  private polled = 0;
  private sweptMs = -Infinity;
  private lastNow: Now;

  constructor(options: DeciderOptions) {
    const { era, token, now } = options;
    this.lastNow = now;
    this.desk = {
      era,
      token,
      calmUntilMs: now.ms + FULL_REPORT_MS,
      openPoll: (key) => {
        this.polled += 1;
        this.polls.set(this.polled, key);
        return this.polled;
      },
      closePoll: (pollId) => this.polls.delete(pollId),
    };
    for (const stored of options.resume) {
      const breaker = this.breakerOf(this.policyOf(stored.key), stored.key);
      breaker.resume(stored, now);
      this.dueKeys.put(breaker);
    }
  }

  setRule(
    policy: { namespace: string; policy: string },
    rule: FleetRule | undefined,
    now: Now,
  ): DeciderEffect[] {
    const turn = this.turn(now);
    const held = this.policyOf(policy);
    const former = held.rule?.settings;
    held.rule = rule;
    held.hashes = hashesOf(held.hashes, former, rule?.settings);
    const wasDecided = former === undefined || isDecided(former.scope);
    const endsDeciding = rule === undefined || (wasDecided && !isDecided(rule.settings.scope));
    for (const breaker of held.keys.values()) {
      if (endsDeciding || !breaker.isCalled(held.hashes, turn.now.ms)) this.removeKey(held, breaker, turn);
    }
    if (rule === undefined) {
      this.policies.get(policy.namespace)?.delete(policy.policy);
    } else {
      for (const breaker of held.keys.values()) {
        breaker.setSettings(rule.settings, turn);
        this.dueKeys.put(breaker);
      }
    }
    return turn.effects;
  }

  agentUp(agent: Parameters<FleetDecider['agentUp']>[0], now: Now): DeciderEffect[] {
    const turn = this.turn(now);
    const replaced = this.roster.up(agent);
    if (replaced !== undefined) this.forget(replaced);
    return turn.effects;
  }

  agentDown(agent: { id: string; incarnation: string }, now: Now): DeciderEffect[] {
    const turn = this.turn(now);
    const entry = this.roster.find(agent);
    if (entry === undefined) return turn.effects;
    entry.up = false;
    entry.downMs = turn.now.ms;
    for (const breaker of new Set(this.polls.values())) this.answered(breaker, agent.id, turn);
    return turn.effects;
  }

  report(
    agent: { id: string; incarnation: string },
    report: Parameters<FleetDecider['report']>[1],
    now: Now,
  ): DeciderEffect[] {
    const turn = this.turn(now);
    const entry = this.roster.find(agent);
    if (entry === undefined || entry.identity.incarnation !== report.incarnation) return turn.effects;
    const at = { spanMs: spanOf(entry, report, turn.now.ms), sequence: report.sequence };
    for (const counts of report.keys) {
      const breaker = this.breakerFor(counts.key, turn);
      // What is not kept now would look new when it is: from here on unknown counters are no zeros.
      if (breaker === undefined) entry.sinceBirth = false;
      breaker?.report(entry, counts, at, turn);
      if (breaker !== undefined) this.dueKeys.put(breaker);
    }
    const asked = report.pollId === 0 ? undefined : this.polls.get(report.pollId);
    if (asked !== undefined) this.answered(asked, agent.id, turn);
    return turn.effects;
  }

  written(
    key: BreakerKey,
    version: Parameters<FleetDecider['written']>[1],
    ok: boolean,
    now: Now,
  ): DeciderEffect[] {
    const turn = this.turn(now);
    const breaker = this.find(key);
    breaker?.written(version, ok, turn);
    if (breaker !== undefined) this.dueKeys.put(breaker);
    return turn.effects;
  }

  force(key: BreakerKey, forced: Parameters<FleetDecider['force']>[1], now: Now): DeciderEffect[] {
    const turn = this.turn(now);
    const rule = this.policies.get(key.namespace)?.get(key.policy)?.rule;
    const isFleets = rule === undefined || isDecided(rule.settings.scope);
    const breaker = isFleets ? this.breakerFor(key, turn) : undefined;
    if (breaker === undefined) {
      const message = isFleets
        ? 'no fleet breaker is known for this policy: nothing was forced'
        : 'every agent decides this breaker alone (scope Instance): nothing was forced';
      turn.effects.push({ kind: 'notice', key, word: 'not-forced', message });
      return turn.effects;
    }
    breaker.force(forced, turn);
    this.dueKeys.put(breaker);
    return turn.effects;
  }

  tick(now: Now): DeciderEffect[] {
    const turn = this.turn(now);
    for (const gone of this.roster.sweep(turn.now.ms)) this.forget(gone);
    this.sweep(turn);
    for (;;) {
      const breaker = this.dueKeys.take(turn.now.ms);
      if (breaker === undefined) return turn.effects;
      breaker.advance(turn);
      this.dueKeys.put(breaker);
    }
  }

  wakeAtMs(): number {
    return this.dueKeys.nextMs();
  }

  views(namespace?: string, now?: Now): KeyView[] {
    const nowMs = Math.max(this.lastNow.ms, now?.ms ?? -Infinity);
    const found: KeyView[] = [];
    for (const [name, policies] of this.policies) {
      if (namespace !== undefined && namespace !== name) continue;
      for (const { keys, rule, hashes } of policies.values()) {
        for (const breaker of keys.values()) {
          if (rule === undefined || breaker.isCalled(hashes, nowMs)) found.push(viewOf(breaker, nowMs));
        }
      }
    }
    return found;
  }

  /** Time never goes back, whatever the host says. */
  private turn(now: Now): Turn {
    const ms = Math.max(now.ms, this.lastNow.ms);
    this.lastNow = { ms, unixMs: now.unixMs };
    return { now: this.lastNow, effects: [] };
  }

  /** Keys of a former rule, and those whose agents are all gone, unless a verdict is in force. */
  private sweep(turn: Turn): void {
    if (turn.now.ms - this.sweptMs < SWEEP_MS) return;
    this.sweptMs = turn.now.ms;
    for (const policies of this.policies.values()) {
      for (const held of policies.values()) {
        if (held.rule === undefined) continue;
        for (const breaker of held.keys.values()) {
          if (!breaker.isCalled(held.hashes, turn.now.ms)) this.removeKey(held, breaker, turn);
        }
      }
    }
  }

  private answered(breaker: KeyBreaker, agent: string, turn: Turn): void {
    breaker.answered(agent, turn);
    this.dueKeys.put(breaker);
  }

  private policyOf({ namespace, policy }: { namespace: string; policy: string }): PolicyKeys {
    let policies = this.policies.get(namespace);
    if (policies === undefined) this.policies.set(namespace, (policies = new Map<string, PolicyKeys>()));
    let held = policies.get(policy);
    if (held === undefined) {
      held = { rule: undefined, hashes: new Set(), keys: new Map(), full: false };
      policies.set(policy, held);
    }
    return held;
  }

  private find(key: BreakerKey): KeyBreaker | undefined {
    return this.policies.get(key.namespace)?.get(key.policy)?.keys.get(key.key);
  }

  /** The key's breaker, made if its policy has a rule and there is room. */
  private breakerFor(key: BreakerKey, turn: Turn): KeyBreaker | undefined {
    const held = this.policies.get(key.namespace)?.get(key.policy);
    const found = held?.keys.get(key.key);
    if (found !== undefined || held?.rule === undefined) return found;
    if (held.keys.size < MAX_KEYS) return this.breakerOf(held, key);
    if (!held.full) {
      held.full = true;
      const message = `the policy has ${MAX_KEYS} breaker keys: further ones are judged by the agents alone`;
      turn.effects.push({ kind: 'notice', key, word: 'too-many-keys', message });
    }
    return undefined;
  }

  private breakerOf(held: PolicyKeys, key: BreakerKey): KeyBreaker {
    const epoch = this.epochs.get(idOf(key)) ?? 0;
    const breaker = new KeyBreaker({ ...key }, held.rule?.settings, this.desk, epoch);
    held.keys.set(key.key, breaker);
    return breaker;
  }

  private removeKey(held: PolicyKeys, breaker: KeyBreaker, turn: Turn): void {
    const { key } = breaker;
    held.keys.delete(key.key);
    breaker.leave();
    for (const { agent } of [...breaker.series.all]) {
      breaker.series.remove(agent);
      agent.sinceBirth = false;
    }
    if (!breaker.hasVerdict) return;
    this.epochs.set(idOf(key), breaker.lastEpoch);
    const [oldest] = this.epochs.keys();
    if (this.epochs.size > MAX_REMEMBERED && oldest !== undefined) this.epochs.delete(oldest);
    turn.effects.push({ kind: 'remove', key });
  }

  private forget(entry: AgentEntry): void {
    for (const series of [...entry.series]) series.leave();
  }
}

/** A rule that differs in numbers only makes the same keys; one with another `per` makes others. */
function hashesOf(
  known: Set<string>,
  former: BreakerSettings | undefined,
  present: BreakerSettings | undefined,
): Set<string> {
  if (present === undefined) return new Set();
  const sameKeys = former === undefined || former.per.join(' ') === present.per.join(' ');
  return new Set([...(sameKeys ? known : []), present.ruleHash].slice(-HASHES_KEPT));
}

/** How far back the new counts of a report may lie: a lost or late report before it makes the span longer. */
function spanOf(entry: AgentEntry, report: { sequence: number; coversMs: number }, nowMs: number): number {
  const { sequence, coversMs } = report;
  const known = entry.reportedMs !== -Infinity;
  if (!known) entry.sinceBirth = sequence === 1;
  const gap = known && sequence > entry.sequence + 1;
  const spanMs = gap ? Math.max(coversMs, nowMs - entry.reportedMs) : coversMs;
  if (sequence > entry.sequence) {
    entry.sequence = sequence;
    entry.reportedMs = nowMs;
  }
  return Math.max(1, spanMs);
}

function idOf({ namespace, policy, key }: BreakerKey): string {
  return `${namespace}/${policy}/${key}`;
}
