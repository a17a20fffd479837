import { DEFAULTS } from '../defaults.js';
import { valueText, type Problem } from '../problem.js';
import { given, refuse, type Reader } from './reader.js';

/** Timeouts and back-off. */
export function callProblems(read: Reader): Problem[] {
  return [...timeouts(read), ...backoff(read)];
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
