import { describe, expect, it } from 'vitest';
import { KEPT_MAX_BYTES, KEPT_MAX_MESSAGES, SentMessages } from './sent-messages.js';

function sentWith(texts: string[], measure = (text: unknown) => String(text).length) {
  const called: string[] = [];
  const sent = new SentMessages(measure);
  for (const text of texts) sent.add(text, { callback: () => called.push(text) });
  return { sent, called };
}

describe('what the application has sent', () => {
  it('is kept for another attempt, and lets the application go on once a message', () => {
    const { sent, called } = sentWith(['a', 'b']);
    sent.written(0);
    sent.written(1);
    sent.written(0);
    expect(called).toEqual(['a', 'b']);
    expect([sent.at(0)?.message, sent.at(1)?.message, sent.at(2)]).toEqual(['a', 'b', undefined]);
    expect(sent.whole).toBe(true);
  });

  it('is let go message by message while nobody can need it again', () => {
    const { sent } = sentWith(['a', 'b']);
    sent.letGo();
    expect(sent.whole).toBe(true);
    sent.written(0);
    expect([sent.whole, sent.at(0), sent.at(1)?.message]).toEqual([false, undefined, 'b']);
  });

  it('is let go beyond 256 KiB', () => {
    const { sent } = sentWith(['a'.repeat(KEPT_MAX_BYTES)]);
    sent.written(0);
    expect(sent.whole).toBe(true);
    sent.add('b', {});
    expect([sent.whole, sent.at(0), sent.at(1)?.message]).toEqual([false, undefined, 'b']);
  });

  it('is let go when a message cannot be measured, and is measured no more', () => {
    let asked = 0;
    const { sent } = sentWith(['a', 'b', 'c'], () => ((asked += 1) === 2 ? Infinity : 1));
    sent.written(0);
    expect([sent.whole, asked]).toEqual([false, 2]);
  });

  it('is let go beyond 1,000 messages', () => {
    const { sent } = sentWith(Array.from({ length: KEPT_MAX_MESSAGES }, () => 'x'));
    sent.written(0);
    expect(sent.whole).toBe(true);
    sent.add('one more', {});
    expect(sent.whole).toBe(false);
  });

  it('is always kept where there is a single request, of any size', () => {
    const sent = new SentMessages();
    sent.add('a'.repeat(KEPT_MAX_BYTES * 2), {});
    sent.written(0);
    expect([sent.whole, sent.at(0) === undefined]).toEqual([true, false]);
  });

  it('lets everyone go on who still waits when the call is over', () => {
    const { sent, called } = sentWith(['a', 'b']);
    sent.written(0);
    sent.end();
    sent.end();
    expect(called).toEqual(['a', 'b']);
    expect(sent.at(0)).toBeUndefined();
  });
});
