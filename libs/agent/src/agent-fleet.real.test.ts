import { BreakerState } from '@bulwark/protocol';
import { eventually } from '@bulwark/testing';
import { afterEach, describe, expect, it } from 'vitest';
import {
  agentOf,
  cleanUp,
  fail,
  fleetOf,
  fraudBreaker,
  fraudKey,
  ok,
  peerAt,
  policy,
  reasonOf,
  verdict,
  version,
} from './agent-fixture.js';

afterEach(async () => {
  expect(await cleanUp()).toEqual([]);
});

describe('an agent and the fleet', () => {
  it('reports what it saw, at once on a failure, and answers a poll at once', async () => {
    const { peer, bulwark } = await fleetOf();
    await bulwark.call('fraud', {}, ok);
    await eventually(() => peer.counters('target')?.successes === 1, { withinMs: 2_000 });
    const began = performance.now();
    await bulwark.call('fraud', {}, fail).catch(() => undefined);
    await eventually(() => peer.counters('target')?.failures === 1, { everyMs: 1 });
    expect(performance.now() - began).toBeLessThan(100);
    expect(peer.counters('target')).toMatchObject({
      runFailures: 1,
      successesSinceFailure: 0,
      localState: 1,
    });
    const pollId = peer.poll([fraudKey]);
    const answer = await eventually(() => peer.reports.find((report) => report.pollId === pollId) ?? false, {
      everyMs: 1,
    });
    expect(answer.keys).toMatchObject([{ successes: 1, failures: 1 }]);
  });

  it('sends its last counts when it is closed, and guards on without a control plane', async () => {
    const { peer, bulwark } = await fleetOf();
    for (let count = 0; count < 7; count += 1) await bulwark.call('fraud', {}, ok);
    await bulwark.close();
    await eventually(() => peer.counters('target')?.successes === 7);
    expect(peer.connected).toBe(false);
    expect(await reasonOf(bulwark)).toBe('admitted');
  });

  it('rejects under an open verdict, and shows its demand', async () => {
    const { peer, bulwark } = await fleetOf();
    peer.verdicts([verdict(1, { state: BreakerState.BREAKER_STATE_OPEN })]);
    await eventually(async () => (await reasonOf(bulwark)) === 'breaker-open', { everyMs: 1 });
    await eventually(() => (peer.counters('target')?.rejected ?? 0) >= 1, { withinMs: 100, everyMs: 1 });
    expect(peer.counters('target')?.inForce).toMatchObject({ epoch: 1 });
  });

  it('goes back to its own breaker when the fleet has no verdict for the key any more', async () => {
    const { peer, bulwark } = await fleetOf();
    peer.verdicts([verdict(1, { state: BreakerState.BREAKER_STATE_OPEN })]);
    await eventually(async () => (await reasonOf(bulwark)) === 'breaker-open');
    await eventually(() => peer.counters('target')?.inForce?.epoch === 1, { withinMs: 2_000 });
    peer.verdicts([], [fraudKey]);
    await eventually(async () => (await reasonOf(bulwark)) === 'admitted');
    await eventually(() => peer.counters('target')?.inForce === undefined, { withinMs: 2_000 });
  });

  it('keeps a verdict that came before the policy it belongs to', async () => {
    const peer = await peerAt();
    const bulwark = await agentOf(peer.address);
    await eventually(() => peer.connected);
    peer.verdicts([verdict(1, { state: BreakerState.BREAKER_STATE_OPEN })]);
    peer.update({ version: version(5), full: true, resources: [policy('fraud', 1, fraudBreaker)] });
    await eventually(() => peer.acks.length === 1);
    expect(await reasonOf(bulwark)).toBe('breaker-open');
  });

  it('makes exactly one probe when it holds the permit and none when another does', async () => {
    const { peer, bulwark } = await fleetOf();
    const halfOpen = { state: BreakerState.BREAKER_STATE_HALF_OPEN };
    const permit = (incarnation: string) => ({
      agent: bulwark.id,
      incarnation,
      remainingMs: 5_000,
      calls: 1,
    });
    peer.verdicts([verdict(1, { ...halfOpen, permit: permit('a former start of this agent') })]);
    await eventually(async () => (await reasonOf(bulwark)) === 'breaker-half-open');
    peer.verdicts([verdict(2, { ...halfOpen, permit: permit(bulwark.incarnation) })]);
    await eventually(() => bulwark.state().policies[0]?.breakers[0]?.epoch === 2);
    const reasons = await Promise.all(Array.from({ length: 8 }, () => reasonOf(bulwark)));
    expect(reasons.filter((reason) => reason === 'admitted')).toHaveLength(1);
    const probed = await eventually(() => peer.counters('target')?.probe ?? false, { withinMs: 1_000 });
    expect(probed).toMatchObject({ version: { epoch: 2 }, outcome: 1, calls: 1 });
  });

  it('admits the exact share while the fleet recovers', async () => {
    const { peer, bulwark } = await fleetOf();
    expect(await reasonOf(bulwark)).toBe('admitted');
    peer.verdicts([verdict(3, { state: BreakerState.BREAKER_STATE_RECOVERING, share: 0.25 })]);
    await eventually(() => bulwark.state().policies[0]?.breakers[0]?.state === 'recovering');
    const reasons = await Promise.all(Array.from({ length: 400 }, () => reasonOf(bulwark)));
    const admitted = reasons.filter((reason) => reason === 'admitted').length;
    expect(Math.abs(admitted - 100)).toBeLessThanOrEqual(1);
    await eventually(() => peer.counters('target')?.step?.offered === 400, { withinMs: 2_000 });
    expect(peer.counters('target')?.step?.admitted).toBe(admitted);
  });
});
