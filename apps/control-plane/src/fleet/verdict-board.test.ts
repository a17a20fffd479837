import { ForcedState, Verdict } from '@bulwark/protocol';
import { describe, expect, it } from 'vitest';
import { VerdictBoard } from './verdict-board.js';

const key = { namespace: 'shop', policy: 'pay', key: 'target' };
const permit = { agent: 'shop/web/a', incarnation: 'one', remainingMs: 1_000, calls: 1 };

function verdict(epoch: number, more: Parameters<typeof Verdict.fromPartial>[0] = {}): Verdict {
  return Verdict.fromPartial({ key, version: { era: 1, token: 1, epoch }, ttlMs: 30_000, ...more });
}

describe('the board of verdicts', () => {
  it('keeps the newest, and refuses an older one', () => {
    const board = new VerdictBoard();
    expect(board.post(verdict(2), 0)).toBeDefined();
    expect(board.post(verdict(1), 0)).toBeUndefined();
    expect(board.get(key)?.version?.epoch).toBe(2);
  });

  it('tells a late agent what is left, and forgets what has ended', () => {
    const board = new VerdictBoard();
    board.post(verdict(1, { permit }), 0);
    const [left] = board.alive(400, () => true);
    expect(left).toMatchObject({ ttlMs: 29_600, permit: { remainingMs: 600 } });
    expect(board.alive(400, () => false)).toEqual([]);
    expect(board.alive(30_000, () => true)).toEqual([]);
    expect(board.get(key)).toBeUndefined();
  });

  it('lets a renewal extend the life of a verdict, and neither a permit nor what was forced', () => {
    const board = new VerdictBoard();
    const forced = { forced: ForcedState.FORCED_STATE_OPEN, forcedRemainingMs: 60_000 };
    board.post(verdict(1, { permit, ...forced }), 0);
    const renewed = board.post(verdict(1, { permit, ...forced }), 900);
    expect(renewed).toMatchObject({ ttlMs: 30_000, permit: { remainingMs: 100 }, forcedRemainingMs: 59_100 });
    expect(board.holdsPermit('shop/web/a', 950)).toBe(true);
    expect(board.holdsPermit('shop/web/a', 1_000)).toBe(false);
  });

  it('keeps what was forced beyond the life of the verdict', () => {
    const board = new VerdictBoard();
    board.post(verdict(1, { forced: ForcedState.FORCED_STATE_OPEN, forcedRemainingMs: 60_000 }), 0);
    expect(board.alive(40_000, () => true)[0]).toMatchObject({ ttlMs: 0, forcedRemainingMs: 20_000 });
    expect(board.alive(60_000, () => true)).toEqual([]);
  });
});
