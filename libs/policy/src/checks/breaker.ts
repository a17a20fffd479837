import { DEFAULTS } from '../defaults.js';
import { parsePercent } from '../percent.js';
import { valueText, type Problem } from '../problem.js';
import { given, refuse, type Reader } from './reader.js';

/** Least `consecutiveFailures` over a fleet: fewer happen by chance when many agents report. */
export const MIN_FLEET_CONSECUTIVE = 10;

/** Rules that could never trip, and cycles that could never end. */
export function breakerProblems(read: Reader): Problem[] {
  return [...breakerRules(read), ...slowerThan(read), ...cooldown(read), ...probe(read), ...recovery(read)];
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
  return problems;
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

function cooldown(read: Reader): Problem[] {
  const path = [...BREAKER, 'cooldown'];
  if (!read.has(...path)) return [];
  const initial = given(read, [...path, 'initial'], DEFAULTS.circuitBreaker.cooldown.initial);
  const max = given(read, [...path, 'max'], DEFAULTS.circuitBreaker.cooldown.max);
  if (initial === undefined || max === undefined || initial.ms <= max.ms) return [];
  const place = [...path, read.has(...path, 'initial') ? 'initial' : 'max'];
  return [refuse(read, place, `initial (${initial.text}) is above max (${max.text})`, 'initial at most max')];
}

function probe(read: Reader): Problem[] {
  const path = [...BREAKER, 'probe'];
  const maxCalls = read.whole(...path, 'maxCalls');
  const typed = read.whole(...path, 'successesToClose');
  const needed = typed ?? DEFAULTS.circuitBreaker.probe.successesToClose;
  if (maxCalls === undefined || maxCalls >= needed) return [];
  const message = `half-open lets ${maxCalls} calls through in all and needs ${needed} successes, so the breaker could never close`;
  const allowed = `a whole number from ${needed} (successesToClose) to 1000`;
  return [refuse(read, [...path, 'maxCalls'], message, allowed)];
}

function recovery(read: Reader): Problem[] {
  const path = [...BREAKER, 'recovery', 'steps'];
  const problems: Problem[] = [];
  let before = 0;
  for (const [index, step] of read.list(...path).entries()) {
    const share = parsePercent(step);
    if (share === undefined || share === 0) continue;
    if (share <= before) {
      const message = `${valueText(step)} does not rise above the step before`;
      problems.push(refuse(read, [...path, index], message, 'rising shares'));
    }
    before = share;
  }
  return problems;
}
