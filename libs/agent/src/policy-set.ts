import {
  breakerKeyFor,
  matchesCaller,
  policyIndex,
  type CompiledPolicy,
  type PolicyIndex,
} from '@bulwark/policy';
import type { BreakerKey, KeyReport } from '@bulwark/protocol';
import {
  Guard,
  type BreakerGate,
  type EngineEvent,
  type FleetVerdict,
  type GateChange,
  type Host,
} from '@bulwark/resilience';
import { toKeyReport } from './key-report.js';
import { breakerKeyId, type VerdictInbox } from './verdict-inbox.js';

export interface PolicySetOptions {
  readonly host: Host;
  readonly labels: Readonly<Record<string, string>>;
  readonly inbox: VerdictInbox;
  /** A breaker key has something to report. */
  readonly onChange: (id: string, change: GateChange) => void;
  readonly onEvent: (event: EngineEvent) => void;
}

const MAX_IDS = 2_000;

interface Guarded {
  readonly guard: Guard;
  readonly uid: string;
  /** Ids of its gates, made once: they are needed at every attempt. */
  readonly ids: Map<string, string>;
}

/**
 * The policies in force and their guards. `swap` replaces the policies in one step; guards of policies that stay go
 * on with their counts, open breakers and calls in flight. A guard is made at the first call: most agents call few of
 * the services their namespace has policies for.
 */
export class PolicySet {
  readonly #options: PolicySetOptions;
  readonly #guards = new Map<string, Guarded>();
  #policies = new Map<string, CompiledPolicy>();
  #index: PolicyIndex = policyIndex([]);
  #slot: number | undefined;
  #serviceAgents = 1;

  constructor(options: PolicySetOptions) {
    this.#options = options;
  }

  /** Policies by "namespace/name". */
  get policies(): ReadonlyMap<string, CompiledPolicy> {
    return this.#policies;
  }

  /** How many of them may guard a call of this agent. */
  get applicable(): number {
    let count = 0;
    for (const policy of this.#policies.values()) {
      if (matchesCaller(policy, this.#options.labels)) count += 1;
    }
    return count;
  }

  swap(policies: Iterable<CompiledPolicy>): void {
    const next = new Map<string, CompiledPolicy>();
    for (const policy of policies) next.set(policyId(policy), policy);
    for (const [id, guarded] of this.#guards) {
      const policy = next.get(id);
      // Calls in flight keep their guard until they end. A re-created policy is another one and starts fresh.
      if (policy === undefined || policy.uid !== guarded.uid) this.#guards.delete(id);
      else if (guarded.guard.settings !== policy.guard) guarded.guard.update(policy.guard);
    }
    this.#policies = next;
    this.#index = policyIndex(next.values());
  }

  /** The policy and guard of a call; undefined = it passes. */
  match(service: string, operation: string): { policy: CompiledPolicy; guard: Guard } | undefined {
    const policy = this.#index.match({ service, operation, callerLabels: this.#options.labels });
    return policy && { policy, guard: this.#guarded(policy).guard };
  }

  /** A verdict the inbox took. Without a guard it waits there. */
  applyVerdict(key: BreakerKey, verdict: FleetVerdict): void {
    this.#guards.get(`${key.namespace}/${key.policy}`)?.guard.applyVerdict(key.key, verdict);
  }

  /** The fleet has no say any more: the process's own breaker decides. */
  dropVerdict(key: BreakerKey): void {
    this.#guards.get(`${key.namespace}/${key.policy}`)?.guard.dropVerdict(key.key);
  }

  setSlot(slot: number): void {
    this.#slot = slot;
    for (const { guard } of this.#guards.values()) guard.setPhase(slot);
  }

  setServiceAgents(count: number): void {
    this.#serviceAgents = Math.max(1, count);
    for (const { guard } of this.#guards.values()) guard.setShare(this.#serviceAgents);
  }

  /** Guards made so far, with their policies. */
  *guards(): Iterable<{ policy: CompiledPolicy; guard: Guard }> {
    for (const [id, { guard }] of this.#guards) {
      const policy = this.#policies.get(id);
      if (policy !== undefined) yield { policy, guard };
    }
  }

  /** Ids of all breaker keys. */
  *ids(): Iterable<string> {
    for (const [policy, { guard }] of this.#guards) {
      for (const gate of guard.gates()) yield `${policy}/${gate.key}`;
    }
  }

  /** Present counters of one breaker key; undefined = there is no such gate. */
  read(id: string): KeyReport | undefined {
    const namespaceEnd = id.indexOf('/');
    const policyEnd = id.indexOf('/', namespaceEnd + 1);
    const key = id.slice(policyEnd + 1);
    const gate = this.#guards.get(id.slice(0, policyEnd))?.guard.gate(key);
    if (gate === undefined) return undefined;
    const namespace = id.slice(0, namespaceEnd);
    const policy = id.slice(namespaceEnd + 1, policyEnd);
    return toKeyReport({ namespace, policy, key }, gate.counters(this.#options.host.nowMs()));
  }

  #guarded(policy: CompiledPolicy): Guarded {
    const id = policyId(policy);
    return this.#guards.get(id) ?? this.#make(id, policy);
  }

  #make(id: string, policy: CompiledPolicy): Guarded {
    const { host, labels, inbox, onEvent } = this.#options;
    const ids = new Map<string, string>();
    const guard = new Guard({
      host,
      settings: policy.guard,
      keyOf: (request, per) => breakerKeyFor(per, { ...request, callerLabels: labels }),
      onEvent,
      onChange: (gate, change) => this.#options.onChange(gateId(ids, policy, gate), change),
    });
    guard.setPhase(this.#slot);
    guard.setShare(this.#serviceAgents);
    const guarded = { guard, uid: policy.uid, ids };
    this.#guards.set(id, guarded);
    for (const { key, verdict } of inbox.of(id, host.nowMs())) guard.applyVerdict(key, verdict);
    return guarded;
  }
}

function policyId(policy: CompiledPolicy): string {
  return `${policy.namespace}/${policy.name}`;
}

function gateId(ids: Map<string, string>, policy: CompiledPolicy, gate: BreakerGate): string {
  let id = ids.get(gate.key);
  if (id === undefined) {
    // Keys come and go with their gates; what is remembered of them must not pile up.
    if (ids.size >= MAX_IDS) ids.clear();
    id = breakerKeyId({ namespace: policy.namespace, policy: policy.name, key: gate.key });
    ids.set(gate.key, id);
  }
  return id;
}
