import { crossProblems } from './cross-checks.js';
import { plainCopy } from './plain-copy.js';
import { problem, type Problem } from './problem.js';
import { policyJsonSchema, type ResiliencePolicy } from './schema/policy.js';
import { structuralProblems } from './structure.js';

/** More problems of one object than this are counted, not listed. */
export const MAX_PROBLEMS = 200;

export type Validation =
  | { readonly ok: true; readonly policy: ResiliencePolicy }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Strict and complete: nothing is coerced, and every problem is in the one answer. `policy` is a plain copy of what
 * was given, values as typed; optional fields that were null are left out. Never throws for data (JSON-like values).
 */
export function validatePolicy(value: unknown): Validation {
  const { copy, problems: copyProblems } = plainCopy(value, policyJsonSchema);
  const problems = [...copyProblems, ...structuralProblems(policyJsonSchema, copy), ...crossProblems(copy)];
  if (problems.length === 0) return { ok: true, policy: copy as ResiliencePolicy };
  return { ok: false, problems: bounded(problems) };
}

function bounded(problems: readonly Problem[]): readonly Problem[] {
  if (problems.length <= MAX_PROBLEMS) return problems;
  const message = `and ${problems.length - MAX_PROBLEMS} more problems`;
  return [...problems.slice(0, MAX_PROBLEMS), problem([], 'invalid', { message })];
}
