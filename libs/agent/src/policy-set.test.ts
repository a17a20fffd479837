import type { CompiledPolicy } from '@bulwark/policy';
import { BreakerState } from '@bulwark/protocol';
import type { GateChange } from '@bulwark/resilience';
import { describe, expect, it } from 'vitest';
import { compileResource } from './compile-resource.js';
import { plainAdapter } from './judge.js';
import { PolicySet } from './policy-set.js';
import { toFleetVerdict, VerdictInbox } from './verdict-inbox.js';

function compiled(
  name: string,
  spec: object,
  identity: { uid?: string; generation?: number } = {},
): CompiledPolicy {
  const result = compileResource({
    name: { kind: 'resiliencepolicies', namespace: 'shop', name },
    uid: identity.uid ?? `uid-${name}`,
    generation: identity.generation ?? 1,
    createdAtMs: 1,
    object: JSON.stringify({ metadata: { name, namespace: 'shop' }, spec }),
  });
  if (!result.ok) throw new Error(result.reason);
  return result.compiled;
}

const perOperation = (total: string) => ({
  target: { service: 'reco' },
  timeout: { total },
  circuitBreaker: {
    scope: 'Fleet',
    per: ['operation'],
    trip: { consecutiveFailures: 10 },
    quorum: { instances: 2, share: '20%' },
  },
});

function bench() {
  const inbox = new VerdictInbox();
  const changes: [string, GateChange][] = [];
  const policies = new PolicySet({
    host: { nowMs: () => 1_000, random: () => 0.5, after: () => () => undefined },
    labels: { app: 'storefront' },
    inbox,
    onChange: (id, change) => changes.push([id, change]),
    onEvent: () => undefined,
  });
  const call = async (operation: string) => {
    const found = policies.match('reco', operation);
    if (found === undefined) return 'unguarded';
    const run = () => Promise.resolve('ok');
    return (await found.guard.call({ operation }, run, plainAdapter<string>())).kind;
  };
  return { inbox, policies, changes, call };
}

describe('the policies in force', () => {
  it('keep counts, by keys with any text in them, over a new generation', async () => {
    const { policies, changes, call } = bench();
    policies.swap([compiled('reco', perOperation('2s'))]);
    await call('GET /v1/recs');
    policies.swap([compiled('reco', perOperation('3s'), { generation: 2 })]);
    await call('GET /v1/recs');
    const id = 'shop/reco/operation=GET /v1/recs';
    expect([...policies.ids()]).toEqual([id]);
    expect(policies.read(id)).toMatchObject({
      key: { namespace: 'shop', policy: 'reco', key: 'operation=GET /v1/recs' },
      successes: 2,
    });
    expect(changes).toEqual([
      [id, 'success'],
      [id, 'success'],
    ]);
    expect(policies.match('reco', 'GET /v1/recs')?.guard.settings.generation).toBe(2);
    expect(policies.read('shop/reco/operation=GET /other')).toBeUndefined();
  });

  it('start fresh when a policy was deleted and made again', async () => {
    const { policies, call } = bench();
    policies.swap([compiled('reco', perOperation('2s'))]);
    await call('GET /');
    policies.swap([compiled('reco', perOperation('2s'), { uid: 'another' })]);
    expect([...policies.ids()]).toEqual([]);
  });

  it('let calls of other services pass, and say how many may ever apply', async () => {
    const { policies, call } = bench();
    const forOthers = { ...perOperation('1s'), callers: { matchLabels: { app: 'batch' } } };
    policies.swap([compiled('others', forOthers), compiled('cart', { target: { service: 'cart' } })]);
    expect(await call('GET /')).toBe('unguarded');
    expect([policies.policies.size, policies.applicable]).toEqual([2, 1]);
  });

  it('obey a verdict that was there before the first call, for its key alone', async () => {
    const { policies, inbox, call } = bench();
    const verdict = toFleetVerdict(
      {
        key: undefined,
        version: { era: 1, token: 1, epoch: 1 },
        state: BreakerState.BREAKER_STATE_OPEN,
        share: 0,
        permit: undefined,
        ttlMs: 30_000,
        forced: 0,
        forcedRemainingMs: 0,
        reason: 'failure-rate',
        cooldownMs: 5_000,
      },
      { id: 'a', incarnation: 'b' },
    );
    inbox.put('shop/reco/operation=GET /bad', verdict!, 900);
    policies.swap([compiled('reco', perOperation('2s'))]);
    expect([await call('GET /bad'), await call('GET /good')]).toEqual(['rejected', 'fresh']);
    policies.dropVerdict({ namespace: 'shop', policy: 'reco', key: 'operation=GET /bad' });
    expect(await call('GET /bad')).toBe('fresh');
  });
});
