import { describe, expect, it } from 'vitest';
import { readBypassText } from './bypass-text.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const at = 1_800_000_000_000;

describe('the text of a bypass file', () => {
  it('is a duration from its modification on, and then a reason', () => {
    expect(readBypassText('30m\nthe fraud breaker is wrong\n  call Ann\n', at, at + 10 * MINUTE)).toEqual({
      kind: 'bypass',
      leftMs: 20 * MINUTE,
      reason: 'the fraud breaker is wrong call Ann',
    });
    expect(readBypassText('24h\r\nwhy', at, at)).toMatchObject({ leftMs: 24 * HOUR, reason: 'why' });
  });

  it('lasts ten minutes when it is empty, and has ended when its time has', () => {
    expect(readBypassText('', at, at)).toEqual({ kind: 'bypass', leftMs: 10 * MINUTE, reason: '' });
    expect(readBypassText('\n', at, at + 10 * MINUTE)).toMatchObject({ leftMs: 0 });
    expect(readBypassText('1s', at, at + 5 * HOUR)).toMatchObject({ leftMs: 0 });
  });

  it('never lasts longer than it says, though it was modified in the future', () => {
    expect(readBypassText('30m', at + HOUR, at)).toMatchObject({ kind: 'bypass', leftMs: 30 * MINUTE });
    expect(readBypassText('30m', at + 25 * HOUR, at)).toMatchObject({ kind: 'unusable' });
  });

  it('is no bypass when it says anything else', () => {
    for (const text of [
      '25h',
      'soon',
      '-5m',
      '0m',
      '30',
      '1h30m',
      '{"for":"30m"}',
      '30m because',
      '\u0000',
      '3m\u00a0x',
    ]) {
      expect(readBypassText(text, at, at).kind, text).toBe('unusable');
    }
    expect(readBypassText('99999999999999999999h', at, at).kind).toBe('unusable');
  });

  it('is bounded in its reason', () => {
    const read = readBypassText(`5m\n${'long '.repeat(800)}`, at, at);
    expect(read.kind === 'bypass' && read.reason.length).toBe(500);
  });
});
