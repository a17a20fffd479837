/**
 * Which policy guards a call. Several may match: named operations win over all operations, more caller labels over
 * fewer, then the older policy, then the name.
 */
import type { CompiledPolicy } from './compile.js';

export interface MatchedCall {
  readonly service: string;
  readonly operation: string;
  /** Labels of the calling agent. */
  readonly callerLabels: Readonly<Record<string, string>>;
}

export interface PolicyIndex {
  /** The winner; undefined = the call is not guarded. */
  readonly match: (call: MatchedCall) => CompiledPolicy | undefined;
}

interface ServiceEntry {
  readonly byOperation: ReadonlyMap<string, readonly CompiledPolicy[]>;
  readonly forAll: readonly CompiledPolicy[];
}

/** Built once for the policies of one namespace; they are sorted here, so a match takes the first that fits. */
export function policyIndex(policies: Iterable<CompiledPolicy>): PolicyIndex {
  const services = new Map<string, CompiledPolicy[]>();
  for (const policy of policies) {
    const list = services.get(policy.target.service);
    if (list === undefined) services.set(policy.target.service, [policy]);
    else list.push(policy);
  }
  const index = new Map([...services].map(([service, list]) => [service, serviceEntry(list)]));
  return {
    match: ({ service, operation, callerLabels }) => {
      const entry = index.get(service);
      if (entry === undefined) return undefined;
      const named = entry.byOperation.get(operation);
      return (named && firstFor(named, callerLabels)) ?? firstFor(entry.forAll, callerLabels);
    },
  };
}

function serviceEntry(policies: readonly CompiledPolicy[]): ServiceEntry {
  const byOperation = new Map<string, CompiledPolicy[]>();
  const forAll: CompiledPolicy[] = [];
  for (const policy of [...policies].sort(comparePrecedence)) {
    if (policy.target.operations === undefined) forAll.push(policy);
    for (const operation of policy.target.operations ?? []) {
      const list = byOperation.get(operation);
      if (list === undefined) byOperation.set(operation, [policy]);
      else list.push(policy);
    }
  }
  return { byOperation, forAll };
}

function firstFor(
  policies: readonly CompiledPolicy[],
  labels: Readonly<Record<string, string>>,
): CompiledPolicy | undefined {
  for (const policy of policies) if (matchesCaller(policy, labels)) return policy;
  return undefined;
}

/** Whether an agent with these labels is among the policy's callers. */
export function matchesCaller(
  policy: Pick<CompiledPolicy, 'callers'>,
  labels: Readonly<Record<string, string>>,
): boolean {
  for (const key of Object.keys(policy.callers)) {
    if (labels[key] !== policy.callers[key]) return false;
  }
  return true;
}

/** Negative when `a` goes before `b` for a call both match. */
export function comparePrecedence(a: CompiledPolicy, b: CompiledPolicy): number {
  const named = Number(b.target.operations !== undefined) - Number(a.target.operations !== undefined);
  const labels = Object.keys(b.callers).length - Object.keys(a.callers).length;
  return named || labels || a.createdAtMs - b.createdAtMs || (a.name < b.name ? -1 : Number(a.name > b.name));
}

export interface Shadowing {
  readonly policy: CompiledPolicy;
  /** Those that win instead, in order of precedence. */
  readonly by: readonly CompiledPolicy[];
}

/**
 * The policies of one namespace that can never win, whatever agents there are: for each call they match, another
 * policy that matches every such call goes before them.
 */
export function shadowed(policies: Iterable<CompiledPolicy>): readonly Shadowing[] {
  const sorted = [...policies].sort(comparePrecedence);
  const found: Shadowing[] = [];
  for (const [place, policy] of sorted.entries()) {
    const before = sorted
      .slice(0, place)
      .filter(
        (other) => other.target.service === policy.target.service && matchesCaller(other, policy.callers),
      );
    const by = coveredBy(policy, before);
    if (by !== undefined) found.push({ policy, by });
  }
  return found;
}

/** Those that win instead of this one policy on every call it matches; empty = it can win. Cheaper than `shadowed`. */
export function shadowersOf(
  policy: CompiledPolicy,
  others: Iterable<CompiledPolicy>,
): readonly CompiledPolicy[] {
  const before: CompiledPolicy[] = [];
  for (const other of others) {
    if (other === policy || other.target.service !== policy.target.service) continue;
    if (comparePrecedence(other, policy) < 0 && matchesCaller(other, policy.callers)) before.push(other);
  }
  return coveredBy(policy, before.sort(comparePrecedence)) ?? [];
}

/** The policies that take every call from `policy`; undefined when some call is left. */
function coveredBy(policy: CompiledPolicy, before: readonly CompiledPolicy[]): CompiledPolicy[] | undefined {
  const { operations } = policy.target;
  if (operations === undefined) {
    const winner = before.find((other) => other.target.operations === undefined);
    return winner && [winner];
  }
  const winners = new Set<CompiledPolicy>();
  for (const operation of operations) {
    const winner = before.find((other) => other.target.operations?.includes(operation));
    if (winner === undefined) return undefined;
    winners.add(winner);
  }
  return before.filter((other) => winners.has(other));
}
