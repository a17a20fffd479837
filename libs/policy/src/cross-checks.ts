/** Refuses what the schema allows but can never work, each with its reason. Works beside problems of the schema. */
import { DEFAULTS } from './defaults.js';
import { parseDuration } from './duration.js';
import { problem, valueText, type Path, type Problem } from './problem.js';
import { MAX_ANNOTATIONS_TOTAL } from './schema/metadata.js';
import { at } from './structure.js';
import { parsePercent } from './percent.js';

/** Least `consecutiveFailures` over a fleet: fewer happen by chance when many agents report. */
export const MIN_FLEET_CONSECUTIVE = 10;

const UNSAFE_METHOD = /^(?:POST|PUT|PATCH|DELETE) /;

/** All of them, in the order of the document. `value` is a plain copy; what is malformed is taken as absent. */
export function crossProblems(value: unknown): Problem[] {
  const read = new Reader(value);
  return [
    ...annotationSize(read),
    ...timeouts(read),
    ...backoff(read),
    ...breakerRules(read),
    ...breakerCycle(read),
    ...bulkheadAdaptive(read),
    ...fallbacks(read),
  ];
}

/** Reads well-formed values; anything else is undefined. */
class Reader {
  constructor(private readonly root: unknown) {}
  any(...path: Path): unknown {
    return at(this.root, path);
  }
  ms(...path: Path): number | undefined {
    return parseDuration(this.any(...path));
  }
  whole(...path: Path): number | undefined {
    const value = this.any(...path);
    return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
  }
  text(...path: Path): string | undefined {
    const value = this.any(...path);
    return typeof value === 'string' ? value : undefined;
  }
  list(...path: Path): readonly unknown[] {
    const value = this.any(...path);
    return Array.isArray(value) ? (value as unknown[]).slice(0, 64) : [];
  }
  has(...path: Path): boolean {
    return this.any(...path) !== undefined;
  }
}

function refuse(read: Reader, path: Path, message: string, allowed: string): Problem {
  return problem(path, 'invalid', { message, allowed, value: read.any(...path) });
}

function annotationSize(read: Reader): Problem[] {
  const path = ['metadata', 'annotations'];
  const annotations = read.any(...path);
  if (typeof annotations !== 'object' || annotations === null) return [];
  let total = 0;
  for (const [key, text] of Object.entries(annotations)) {
    total += key.length + (typeof text === 'string' ? text.length : 0);
  }
  if (total <= MAX_ANNOTATIONS_TOTAL) return [];
  const allowed = `${MAX_ANNOTATIONS_TOTAL} characters in all`;
  return [problem(path, 'invalid', { message: `hold ${total} characters in all`, allowed })];
}

/** A duration with its text and whether it was typed or is the default. */
function given(
  read: Reader,
  path: Path,
  fallback: string,
): { readonly ms: number; readonly text: string } | undefined {
  if (!read.has(...path)) return { ms: parseDuration(fallback) ?? 0, text: `${fallback}, the default` };
  const ms = read.ms(...path);
  return ms === undefined ? undefined : { ms, text: read.text(...path) ?? '' };
}

function timeouts(read: Reader): Problem[] {
  const path = ['spec', 'timeout', 'attempt'];
  const attempt = read.ms(...path);
  const total = given(read, ['spec', 'timeout', 'total'], DEFAULTS.timeout.total);
  if (attempt === undefined || total === undefined || attempt < total.ms) return [];
  const message = `${valueText(read.any(...path))} is not less than timeout.total (${total.text}), so it could never end an attempt`;
  return [refuse(read, path, message, `a duration below ${total.text}; or leave it out`)];
}

function backoff(read: Reader): Problem[] {
  if (!read.has('spec', 'retry', 'backoff')) return [];
  const base = given(read, ['spec', 'retry', 'backoff', 'base'], DEFAULTS.retry.backoff.base);
  const max = given(read, ['spec', 'retry', 'backoff', 'max'], DEFAULTS.retry.backoff.max);
  if (base === undefined || max === undefined || base.ms <= max.ms) return [];
  const path = ['spec', 'retry', 'backoff', read.has('spec', 'retry', 'backoff', 'base') ? 'base' : 'max'];
  return [refuse(read, path, `base (${base.text}) is above max (${max.text})`, 'base at most max')];
}

const BREAKER = ['spec', 'circuitBreaker'] as const;

function breakerRules(read: Reader): Problem[] {
  const problems: Problem[] = [];
  const scope = read.text(...BREAKER, 'scope') ?? DEFAULTS.circuitBreaker.scope;
  for (const rule of ['failureRate', 'slowRate'] as const) {
    const path = [...BREAKER, 'trip', rule];
    const calls = read.whole(...path, 'window', 'calls');
    const minimum = read.whole(...path, 'minimumCalls');
    if (calls !== undefined && scope !== 'Instance') {
      const message = `a window by calls needs scope Instance (scope is ${scope}): a fleet's calls have no common order`;
      problems.push(
        refuse(read, [...path, 'window'], message, 'a span of time such as 10s, or scope: Instance'),
      );
    }
    if (calls !== undefined && minimum !== undefined && minimum > calls) {
      const message = `${minimum} calls never fit in a window of ${calls}, so the rule could never trip`;
      problems.push(refuse(read, [...path, 'minimumCalls'], message, `a whole number from 1 to ${calls}`));
    }
  }
  const consecutive = read.whole(...BREAKER, 'trip', 'consecutiveFailures');
  if (consecutive !== undefined && scope !== 'Instance' && consecutive < MIN_FLEET_CONSECUTIVE) {
    const message = `${consecutive} is too few for scope ${scope}: many agents together see that by chance`;
    const allowed = `a whole number from ${MIN_FLEET_CONSECUTIVE} to 10000, or scope: Instance`;
    problems.push(refuse(read, [...BREAKER, 'trip', 'consecutiveFailures'], message, allowed));
  }
  return [...problems, ...slowerThan(read)];
}

function slowerThan(read: Reader): Problem[] {
  const path = [...BREAKER, 'trip', 'slowRate', 'slowerThan'];
  const slower = read.ms(...path);
  const attempt = read.ms('spec', 'timeout', 'attempt');
  const limit =
    attempt === undefined
      ? given(read, ['spec', 'timeout', 'total'], DEFAULTS.timeout.total)
      : { ms: attempt, text: read.text('spec', 'timeout', 'attempt') ?? '' };
  if (slower === undefined || limit === undefined || slower < limit.ms) return [];
  const name = attempt === undefined ? 'timeout.total' : 'timeout.attempt';
  const message = `no call can be that slow: ${name} (${limit.text}) ends it before`;
  return [refuse(read, path, message, `a duration below ${limit.text}`)];
}

/** Cooldown, probe and recovery: what could never open again, close, or rise. */
function breakerCycle(read: Reader): Problem[] {
  const problems: Problem[] = [];
  const cooldown = [...BREAKER, 'cooldown'];
  if (read.has(...cooldown)) {
    const initial = given(read, [...cooldown, 'initial'], DEFAULTS.circuitBreaker.cooldown.initial);
    const max = given(read, [...cooldown, 'max'], DEFAULTS.circuitBreaker.cooldown.max);
    if (initial !== undefined && max !== undefined && initial.ms > max.ms) {
      const path = [...cooldown, read.has(...cooldown, 'initial') ? 'initial' : 'max'];
      const message = `initial (${initial.text}) is above max (${max.text})`;
      problems.push(refuse(read, path, message, 'initial at most max'));
    }
  }
  const maxCalls = read.whole(...BREAKER, 'probe', 'maxCalls');
  const needed =
    read.whole(...BREAKER, 'probe', 'successesToClose') ?? DEFAULTS.circuitBreaker.probe.successesToClose;
  if (maxCalls !== undefined && maxCalls < needed) {
    const message = `half-open lets ${maxCalls} calls through in all and needs ${needed} successes, so the breaker could never close`;
    const allowed = `a whole number from ${needed} (successesToClose) to 1000`;
    problems.push(refuse(read, [...BREAKER, 'probe', 'maxCalls'], message, allowed));
  }
  let before = 0;
  for (const [index, step] of read.list(...BREAKER, 'recovery', 'steps').entries()) {
    const share = parsePercent(step);
    if (share === undefined) continue;
    if (share <= before && share > 0) {
      const message = `${valueText(step)} does not rise above the step before`;
      problems.push(refuse(read, [...BREAKER, 'recovery', 'steps', index], message, 'rising shares'));
    }
    before = share;
  }
  return problems;
}

function bulkheadAdaptive(read: Reader): Problem[] {
  const path = ['spec', 'bulkhead', 'adaptive'];
  const adaptive = read.text(...path);
  if (adaptive !== 'gradient' && adaptive !== 'aimd') return [];
  return [
    problem(path, 'forbidden', {
      message: `${adaptive} is not available yet`,
      allowed: 'none',
      value: adaptive,
    }),
  ];
}

function fallbacks(read: Reader): Problem[] {
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
