import { DEFAULTS } from '../defaults.js';
import { problem, valueText, type Path, type Problem } from '../problem.js';
import { refuse, type Reader } from './reader.js';

const UNSAFE_METHOD = /^(?:POST|PUT|PATCH|DELETE) /;

/** Fallbacks that are not allowed, or could never answer. */
export function fallbackProblems(read: Reader): Problem[] {
  const path = ['spec', 'fallback'];
  const entries = read.list(...path);
  const problems: Problem[] = [];
  if (read.text('spec', 'contract') === 'required' && entries.length > 0) {
    const message =
      'contract is required: the caller cannot do without this dependency, so a failure must reach it as a failure';
    problems.push(
      problem(path, 'forbidden', { message, allowed: 'no fallback, or contract: optional', value: entries }),
    );
  }
  const seen = new Set<string>();
  for (const index of entries.keys()) {
    for (const kind of ['lastGood', 'simplified', 'static'] as const) {
      if (!read.has(...path, index, kind)) continue;
      problems.push(...order(read, [...path, index, kind], seen));
      seen.add(kind);
    }
    problems.push(...lastGood(read, [...path, index, 'lastGood']));
    problems.push(...simplified(read, [...path, index, 'simplified']));
  }
  return problems;
}

function order(read: Reader, path: Path, seen: ReadonlySet<string>): Problem[] {
  const kind = String(path.at(-1));
  if (seen.has(kind)) {
    return [problem(path, 'duplicate', { message: `there is a ${kind} before`, allowed: 'each kind once' })];
  }
  // A simplified answer that is used by queue length is asked before the call, wherever it stands.
  const byQueue = kind === 'simplified' && read.has(...path, 'whenQueued');
  if (!seen.has('static') || byQueue) return [];
  const message = 'stands after static, which always answers, so it could never be used';
  return [problem(path, 'invalid', { message, allowed: 'static as the last entry' })];
}

function lastGood(read: Reader, path: Path): Problem[] {
  if (!read.has(...path)) return [];
  const problems: Problem[] = [];
  for (const [index, operation] of read.list('spec', 'target', 'operations').entries()) {
    if (typeof operation !== 'string' || !UNSAFE_METHOD.test(operation)) continue;
    const message = `lastGood cannot answer ${valueText(operation)}: the method changes things, and its answer belongs to one request`;
    const allowed = `safe methods in spec.target.operations[${index}]`;
    problems.push(problem(path, 'invalid', { message, allowed, value: operation }));
  }
  const seen = new Set<string>();
  for (const [index, header] of read.list(...path, 'varyBy').entries()) {
    if (typeof header !== 'string') continue;
    const name = header.toLowerCase();
    // The very same text is found by the schema already.
    if (
      seen.has(name) &&
      !read
        .list(...path, 'varyBy')
        .slice(0, index)
        .includes(header)
    ) {
      const message = `${valueText(header)} stands in the list already: header names ignore case`;
      problems.push(
        problem([...path, 'varyBy', index], 'duplicate', {
          message,
          allowed: 'each header once',
          value: header,
        }),
      );
    }
    seen.add(name);
  }
  return problems;
}

function simplified(read: Reader, path: Path): Problem[] {
  if (!read.has(...path)) return [];
  const problems: Problem[] = [];
  const operation = read.text(...path, 'operation');
  if (operation !== undefined && read.list('spec', 'target', 'operations').includes(operation)) {
    const message = `${valueText(operation)} is one of the operations this policy guards, so it would stand in for itself`;
    problems.push(
      refuse(read, [...path, 'operation'], message, 'an operation not in spec.target.operations'),
    );
  }
  const whenQueued = read.whole(...path, 'whenQueued');
  if (whenQueued === undefined) return problems;
  if (!read.has('spec', 'bulkhead')) {
    const message = 'nothing ever queues without a bulkhead, so the number could never be reached';
    problems.push(
      refuse(read, [...path, 'whenQueued'], message, 'spec.bulkhead with maxQueued, or leave it out'),
    );
    return problems;
  }
  const maxQueued = read.has('spec', 'bulkhead', 'maxQueued')
    ? read.whole('spec', 'bulkhead', 'maxQueued')
    : DEFAULTS.bulkhead.maxQueued;
  if (maxQueued !== undefined && whenQueued > maxQueued) {
    const message = `the bulkhead's queue holds ${maxQueued} (maxQueued), so ${whenQueued} could never be reached`;
    problems.push(
      refuse(read, [...path, 'whenQueued'], message, `a whole number from 1 to maxQueued (${maxQueued})`),
    );
  }
  return problems;
}
