import type { StoredVerdict } from '@bulwark/fleet';
import { isMap, readRecord } from '../objects/json-value.js';

type Is = (value: unknown) => boolean;

const MAX_UNIX_MS = 8_640_000_000_000_000;

const isText: Is = (value) => typeof value === 'string';
const isName: Is = (value) => typeof value === 'string' && value !== '';
const isWhole: Is = (value) => Number.isSafeInteger(value);
const isCount: Is = (value) => Number.isSafeInteger(value) && Number(value) >= 0;
const isSpan: Is = (value) => Number.isFinite(value) && Number(value) >= 0;
const isShare: Is = (value) => isSpan(value) && Number(value) <= 1;
const isTime: Is = (value) => Number.isFinite(value) && Math.abs(Number(value)) <= MAX_UNIX_MS;
const oneOf = (...words: readonly string[]): Is => {
  return (value) => typeof value === 'string' && words.includes(value);
};
const isState = oneOf('closed', 'open', 'half-open', 'recovering');
const optional = (is: Is): Is => {
  return (value) => value === undefined || is(value);
};
const map = (members: Readonly<Record<string, Is>>): Is => {
  return (value) => isMap(value) && Object.entries(members).every(([name, is]) => is(value[name]));
};

const isVerdict = map({
  key: map({ namespace: isName, policy: isName, key: isName }),
  version: map({ era: isCount, token: isCount, epoch: isCount }),
  state: isState,
  share: isShare,
  step: isWhole,
  permit: optional(map({ agent: isName, incarnation: isText, calls: isCount, timeoutMs: isSpan })),
  forced: optional(map({ state: oneOf('open', 'closed'), remainingMs: isSpan, by: isText, reason: isText })),
  reason: isText,
  message: isText,
  cooldownMs: isSpan,
  trips: isCount,
  sinceUnixMs: isTime,
  writtenUnixMs: isTime,
  transitions: (value) => Array.isArray(value) && value.every(isTransition),
});

const isTransition = map({
  unixMs: isTime,
  from: isState,
  to: isState,
  reason: isText,
  message: isText,
  epoch: isCount,
  share: isShare,
});

/**
 * A stored verdict; undefined when it cannot be read: somebody wrote it by hand, or another version did. One bad record
 * must neither stop all deciding nor end the process that shows it.
 */
export function parseVerdict(value: string): StoredVerdict | undefined {
  const record = readRecord(value);
  return isVerdict(record) ? (record as unknown as StoredVerdict) : undefined;
}
