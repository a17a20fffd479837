import { BreakerState, ForcedState, Verdict } from '@bulwark/protocol';
import { describe, expect, it } from 'vitest';
import { toFleetVerdict, VerdictInbox } from './verdict-inbox.js';

const me = { id: 'shop/storefront/a', incarnation: 'i1' };
const message = (epoch: number, parts: Partial<Verdict> = {}) =>
  Verdict.fromPartial({
    key: { namespace: 'shop', policy: 'reco', key: 'target' },
    version: { era: 1, token: 5, epoch },
    state: BreakerState.BREAKER_STATE_OPEN,
    ttlMs: 30_000,
    cooldownMs: 5_000,
    reason: 'failure-rate',
    ...parts,
  });
const verdict = (epoch: number, parts?: Partial<Verdict>) => toFleetVerdict(message(epoch, parts), me)!;

describe('a verdict from the wire', () => {
  it('carries a permit only to the agent and the start it was given to', () => {
    const permit = { agent: me.id, incarnation: 'i1', remainingMs: 900, calls: 1 };
    const state = BreakerState.BREAKER_STATE_HALF_OPEN;
    expect(verdict(1, { state, permit })).toMatchObject({
      state: 'half-open',
      permitCalls: 1,
      permitMs: 900,
    });
    expect(verdict(1, { state, permit: { ...permit, incarnation: 'i0' } }).permitCalls).toBe(0);
    expect(verdict(1, { state, permit: { ...permit, agent: 'shop/storefront/b' } }).permitCalls).toBe(0);
  });

  it('is dropped when it is no whole one: no version, no state, forced without a time', () => {
    expect(toFleetVerdict({ ...message(1), version: undefined }, me)).toBeUndefined();
    expect(toFleetVerdict(message(1, { state: BreakerState.BREAKER_STATE_UNSPECIFIED }), me)).toBeUndefined();
    expect(toFleetVerdict(message(1, { forced: ForcedState.FORCED_STATE_OPEN }), me)).toBeUndefined();
  });

  it('read late, has its times shortened by what it waited: a permit is not longer than the decider thinks', () => {
    const permit = { agent: me.id, incarnation: 'i1', remainingMs: 900, calls: 1 };
    const late = (ms: number) =>
      toFleetVerdict(message(1, { state: BreakerState.BREAKER_STATE_HALF_OPEN, permit }), me, ms);
    expect(late(300)).toMatchObject({ permitMs: 600, ttlMs: 29_700 });
    expect(late(60_000)).toMatchObject({ permitMs: 0, ttlMs: 0 });
  });

  it('has its share kept within 0 and 1', () => {
    expect(verdict(1, { share: 7 }).share).toBe(1);
    expect(verdict(1, { share: -1 }).share).toBe(0);
  });
});

describe('the inbox of verdicts', () => {
  it('never gives way to an older one, and an equal one renews the time to live', () => {
    const inbox = new VerdictInbox();
    expect(inbox.put('k', verdict(4), 0)).toBe(true);
    expect(inbox.put('k', verdict(3), 10)).toBe(false);
    expect(inbox.put('k', verdict(4), 20_000)).toBe(true);
    expect(inbox.get('k', 40_000)).toMatchObject({ version: { epoch: 4 }, ttlMs: 10_000 });
    expect(inbox.get('k', 50_000)).toBeUndefined();
  });

  it('keeps a forced state beyond the time to live, to its own end', () => {
    const inbox = new VerdictInbox();
    inbox.put('k', verdict(1, { forced: ForcedState.FORCED_STATE_OPEN, forcedRemainingMs: 60_000 }), 0);
    expect(inbox.get('k', 45_000)).toMatchObject({ ttlMs: 0, forced: 'open', forcedMs: 15_000 });
    expect(inbox.get('k', 60_000)).toBeUndefined();
  });

  it('is bounded, and the one heard of longest ago goes first', () => {
    const inbox = new VerdictInbox(2);
    for (const id of ['a', 'b', 'a', 'c']) inbox.put(id, verdict(1), 0);
    expect(inbox.get('a', 1)).toBeDefined();
    expect(inbox.get('b', 1)).toBeUndefined();
    expect(inbox.get('c', 1)).toBeDefined();
  });
});
