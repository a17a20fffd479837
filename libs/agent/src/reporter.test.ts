import { KeyReport, Poll, type Report } from '@bulwark/protocol';
import { describe, expect, it } from 'vitest';
import { Reporter } from './reporter.js';
import { breakerKeyId } from './verdict-inbox.js';

/** A clock with exact timers, and a stream that can be blocked. */
function bench() {
  let nowMs = 1_000;
  const timers = new Set<{ atMs: number; task: () => void }>();
  const sent: (Report & { atMs: number })[] = [];
  const stream = { open: true };
  const known = new Set<string>(['ns/p/a', 'ns/p/b']);
  const reporter = new Reporter({
    incarnation: 'i1',
    host: {
      nowMs: () => nowMs,
      random: () => 0.5,
      after: (delayMs, task) => {
        const timer = { atMs: nowMs + delayMs, task };
        timers.add(timer);
        return () => timers.delete(timer);
      },
    },
    read: (id) => {
      const [namespace = '', policy = '', key = ''] = id.split('/');
      return known.has(id) ? KeyReport.fromPartial({ key: { namespace, policy, key } }) : undefined;
    },
    ids: () => known,
    send: (report) => {
      if (!stream.open) return false;
      sent.push({ ...report, atMs: nowMs });
      return true;
    },
  });
  const advanceTo = (toMs: number) => {
    for (;;) {
      const next = [...timers].sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > toMs) break;
      timers.delete(next);
      nowMs = next.atMs;
      next.task();
    }
    nowMs = toMs;
  };
  return { reporter, sent, stream, known, advanceTo };
}
const keysOf = (report: Report) => report.keys.map((key) => key.key?.key);

describe('when an agent reports', () => {
  it('tells a new replica everything, then about once a second while something changes, and nothing when idle', () => {
    const { reporter, sent, advanceTo } = bench();
    reporter.connected();
    advanceTo(1_000);
    expect(sent.map(keysOf)).toEqual([['a', 'b']]);
    for (let at = 1_010; at <= 5_000; at += 10) {
      advanceTo(at);
      reporter.changed('ns/p/a');
    }
    expect(sent.map((report) => report.atMs)).toEqual([1_000, 2_000, 3_000, 4_000, 5_000]);
    advanceTo(60_000);
    expect(sent).toHaveLength(6);
  });

  it('reports the first change after a silence at once, and covers only the time since that change', () => {
    const { reporter, sent, advanceTo } = bench();
    reporter.connected();
    advanceTo(61_000);
    reporter.changed('ns/p/a');
    advanceTo(61_001);
    expect(sent).toHaveLength(2);
    expect(sent[1]).toMatchObject({ atMs: 61_000, coversMs: 1, sequence: 2 });
  });

  it('reports a failure at once but never more often than every 20 ms', () => {
    const { reporter, sent, advanceTo } = bench();
    reporter.connected();
    advanceTo(2_000);
    for (let at = 2_000; at < 2_100; at += 1) {
      advanceTo(at);
      reporter.urgent('ns/p/a');
    }
    advanceTo(2_099);
    expect(sent.slice(1).map((report) => report.atMs)).toEqual([2_000, 2_020, 2_040, 2_060, 2_080]);
  });

  it('keeps marks only while the stream is blocked, and then one report covers the whole span', () => {
    const { reporter, sent, stream, advanceTo } = bench();
    reporter.connected();
    advanceTo(3_000);
    stream.open = false;
    for (let at = 3_000; at < 9_000; at += 5) {
      advanceTo(at);
      reporter.urgent('ns/p/a');
    }
    expect(sent).toHaveLength(1);
    stream.open = true;
    reporter.writable();
    advanceTo(9_100);
    expect(sent.slice(1).map((report) => [keysOf(report), report.coversMs >= 5_990])).toEqual([
      [['a'], true],
    ]);
  });

  it('puts at most 1,000 keys in a report and sends the parts together', () => {
    const { reporter, sent, known, advanceTo } = bench();
    for (let index = 0; index < 2_498; index += 1) known.add(`ns/p/k${index}`);
    advanceTo(9_000);
    reporter.connected();
    advanceTo(9_000);
    expect(sent.map((report) => [report.atMs, report.keys.length, report.sequence, report.coversMs])).toEqual(
      [
        [9_000, 1_000, 1, 8_000],
        [9_000, 1_000, 2, 8_000],
        [9_000, 500, 3, 8_000],
      ],
    );
  });

  it('answers a poll at once with the keys asked, changed or not, and leaves out those it does not have', () => {
    const { reporter, sent, advanceTo } = bench();
    reporter.connected();
    advanceTo(1_500);
    const key = (name: string) => ({ namespace: 'ns', policy: 'p', key: name });
    reporter.poll(Poll.fromPartial({ pollId: 77, keys: [key('b'), key('unknown')] }), breakerKeyId);
    expect(sent[1]).toMatchObject({ atMs: 1_500, pollId: 77 });
    expect(keysOf(sent[1]!)).toEqual(['b']);
  });

  it('covers the moments before a loss once more, since those reports may never have arrived', () => {
    const { reporter, sent, advanceTo } = bench();
    reporter.connected();
    advanceTo(50_000);
    reporter.disconnected();
    advanceTo(52_000);
    reporter.connected();
    advanceTo(52_000);
    expect(sent[1]).toMatchObject({ atMs: 52_000, coversMs: 7_000 });
  });

  it('sends nothing while disconnected, however much changes', () => {
    const { reporter, sent, advanceTo } = bench();
    for (let at = 1_000; at < 9_000; at += 10) {
      advanceTo(at);
      reporter.urgent('ns/p/a');
    }
    expect(sent).toHaveLength(0);
  });
});
