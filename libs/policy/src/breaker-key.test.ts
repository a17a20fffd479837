import { describe, expect, it } from 'vitest';
import { breakerKeyFor, MAX_BREAKER_KEY } from './breaker-key.js';

const call = {
  operation: 'GET /v1/recs',
  callerLabels: { zone: 'a', app: 'x' },
  attributes: { shard: '7' },
};

describe('the key of a breaker', () => {
  it.each([
    [['target'], 'target'],
    [['operation'], 'operation=GET /v1/recs'],
    [['caller.zone'], 'caller.zone=a'],
    [['call.shard'], 'call.shard=7'],
    [['call.shard', 'caller.zone', 'operation'], 'call.shard=7,caller.zone=a,operation=GET /v1/recs'],
    [['target', 'call.shard'], 'target,call.shard=7'],
  ])('of %j is %s', (per, key) => {
    expect(breakerKeyFor(per, call)).toBe(key);
  });

  it('has an empty value where the call has none, and takes nothing from a prototype', () => {
    expect(breakerKeyFor(['call.tenant'], call)).toBe('call.tenant=');
    expect(breakerKeyFor(['call.toString', 'caller.constructor'], call)).toBe(
      'call.toString=,caller.constructor=',
    );
    expect(breakerKeyFor(['call.shard'], { operation: 'x', callerLabels: {} })).toBe('call.shard=');
  });

  it('keeps calls apart whose values contain commas', () => {
    const key = (shard: string, tenant: string) =>
      breakerKeyFor(['call.shard', 'call.tenant'], { ...call, attributes: { shard, tenant } });
    expect(key('7,call.tenant=x', '')).not.toBe(key('7', 'x,call.tenant='));
  });

  it('is capped', () => {
    const key = breakerKeyFor(['call.shard'], { ...call, attributes: { shard: 'x'.repeat(1_000) } });
    expect(key).toHaveLength(MAX_BREAKER_KEY);
  });

  it('is capped in bytes, too: a longer one would be refused in every report', () => {
    const of = (shard: string) => breakerKeyFor(['call.shard'], { ...call, attributes: { shard } });
    expect(Buffer.byteLength(of('店'.repeat(200)))).toBeLessThanOrEqual(512);
    expect(Buffer.byteLength(of('店'.repeat(200)))).toBeGreaterThan(509);
    expect(of('店'.repeat(166))).toBe(`call.shard=${'店'.repeat(166)}`);
  });

  it('never ends in half a character, which no message can carry', () => {
    for (const pad of ['', 'x']) {
      const key = breakerKeyFor(['call.shard'], {
        ...call,
        attributes: { shard: `${pad}${'😀'.repeat(200)}` },
      });
      expect(Buffer.from(key).toString()).toBe(key);
      expect(key.length).toBeGreaterThan(200);
    }
  });
});
