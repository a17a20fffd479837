import { KeyReport, Report } from '@bulwark/protocol';
import { describe, expect, it } from 'vitest';
import { checkReport } from './report-messages.js';

const agent = { namespace: 'shop', incarnation: 'one' };
const key = { namespace: 'shop', policy: 'pay', key: 'target' };

function check(keys: Parameters<typeof KeyReport.fromPartial>[0][], more: Partial<Report> = {}) {
  const report = Report.fromPartial({ incarnation: 'one', sequence: 1, coversMs: 5, ...more });
  return checkReport({ ...report, keys: keys.map((one) => KeyReport.fromPartial(one)) }, agent);
}

describe('a report', () => {
  it('is taken with its counters', () => {
    const checked = check([{ key, rule: 'r', failures: 3, slow: 1, lastSuccessAgeMs: 7 }]);
    expect(checked?.refused).toBe(0);
    expect(checked?.report.keys[0]).toMatchObject({
      failures: 3,
      lastSuccessAgeMs: 7,
      localState: 'unknown',
      probe: undefined,
    });
  });

  it('of another start of the agent is not taken', () => {
    expect(check([], { incarnation: 'two' })).toBeUndefined();
  });

  it.each([
    ['another namespace', { key: { ...key, namespace: 'other' } }],
    ['no key', {}],
    ['a key too long', { key: { ...key, key: 'x'.repeat(600) } }],
    ['a number that is none', { key, failures: Number.NaN }],
    ['more slow calls than calls', { key, slow: 5, successes: 1 }],
    ['a negative count', { key, rejected: -1 }],
  ])('loses a key with %s, and keeps the others', (_what, wrong) => {
    const checked = check([wrong, { key, successes: 1 }]);
    expect([checked?.refused, checked?.report.keys.length]).toEqual([1, 1]);
  });
});
