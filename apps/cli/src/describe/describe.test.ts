import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeServer } from '../testing/fake-server.js';
import { runCli } from '../testing/run-cli.js';
import { sampleAgent, sampleBreaker } from '../testing/samples.js';

describe('bulwark describe', () => {
  let server: FakeServer;
  const show = async (...args: string[]) =>
    (await runCli(['describe', ...args, '-n', 'shop', '--server', server.url])).stdout;

  beforeEach(async () => {
    server = await FakeServer.start();
    server.put('resiliencepolicies', {
      apiVersion: 'bulwark.dev/v1',
      kind: 'ResiliencePolicy',
      metadata: {
        name: 'reco',
        generation: 7,
        creationTimestamp: '2026-02-17T12:00:00Z',
        annotations: { 'bulwark.dev/owner': 'team-reco', 'bulwark.dev/runbook': 'https://runbooks/reco' },
      },
      spec: {
        target: { service: 'recs' },
        retry: {},
        circuitBreaker: { trip: { failureRate: { ratio: '50%' } } },
        fallback: [{ lastGood: { maxAge: '120s' } }],
      },
      status: {
        observedGeneration: 7,
        conditions: [
          { type: 'Distributed', status: 'False', reason: 'StillPropagating', message: '1/2 agents' },
        ],
      },
    });
  });

  afterEach(() => server.stop());

  it('a breaker: why, since when, who, what comes next, and its transitions', async () => {
    server.put(
      'breakers',
      sampleBreaker('reco.1a2b3c4d', {
        state: 'Open',
        reason: 'failure-rate',
        message: '52 of 100 calls failed at 9 agents',
        note: 'waiting for demand',
        agents: { total: 12, open: 9, halfOpen: 0, closed: 3, synced: 11 },
        forced: { state: 'Closed', by: 'ann', reason: 'test\u001b[31m' },
        transitions: [
          {
            time: '2026-03-01T11:57:46Z',
            from: 'Closed',
            to: 'Open',
            reason: 'failure-rate',
            message: '52 of 100 calls failed at 9 agents',
            epoch: 3,
          },
        ],
      }),
    );
    expect(await show('breaker', 'reco')).toBe(`Name:          reco.1a2b3c4d
Namespace:     shop
Policy:        reco
Target:        recs
Key:           target
Scope:         Fleet
Owner:         team-reco
Runbook:       https://runbooks/reco
State:         ForcedClosed (100% of the calls pass)
Since:         2026-03-01T11:57:46Z (2m14s ago)
Why:           failure-rate: 52 of 100 calls failed at 9 agents
Forced:        Closed by ann: test?[31m
Computed:      Open
Note:          waiting for demand
Trips at:      50%/10s
Minimum:       20 calls in the window
Per:           target
Quorum:        2 agents (fewer only where fewer have called in the last 10 s) and 20% of those that called
Failures:      5xx; UNAVAILABLE, DEADLINE_EXCEEDED, INTERNAL; full timeouts
Cooldown:      5s, x2 after a failed probe, at most 1m
Probe:         1 at once, 1 good in a row, 1s each
Recovery:      10% -> 25% -> 50% -> 100%, 5s a step
Probe permit:  none given
Verdict:       era 1, token 7, epoch 3
Agents:        12 report this key; 11 have the present verdict in force
Own breakers:  9 open, 0 half-open, 3 closed
Calls:         412.0/s, 0.4% failures, 0/s rejected (averages of the last 10 s)
Transitions:
  TIME                               EPOCH   CHANGE           WHY
  2026-03-01T11:57:46Z (2m14s ago)   3       Closed -> Open   failure-rate: 52 of 100 calls failed at 9 agents
`);
  });

  it('a breaker in shadow mode: that all calls pass, and what would be rejected', async () => {
    const mode = async (status: Parameters<typeof sampleBreaker>[1]) => {
      const enforced = sampleBreaker('reco.1a2b3c4d', status);
      server.put('breakers', { ...enforced, spec: { ...enforced.spec, mode: 'Shadow' } });
      return (await show('breaker', 'reco')).split('\n').filter((line) => /^(Mode|State):/.test(line));
    };
    expect(await mode({ state: 'Open' })).toEqual([
      'Mode:          Shadow: decides and reports, changes nothing; would reject every call',
      'State:         Shadow(Open) (100% of the calls pass)',
    ]);
    expect((await mode({ state: 'HalfOpen' }))[0]).toMatch(/would reject all calls but the probe$/);
    expect((await mode({ state: 'Recovering', share: '25%' }))[0]).toMatch(
      /reject all but 25% of the calls$/,
    );
    expect((await mode({ state: 'Closed' }))[0]).toMatch(/would reject nothing$/);
  });

  it('a breaker of scope Instance: how many agents stop their calls, and no verdict', async () => {
    const fleet = sampleBreaker('reco.1a2b3c4d', {
      agents: { total: 12, open: 3, halfOpen: 0, closed: 9, synced: 0 },
    });
    server.put('breakers', { ...fleet, spec: { ...fleet.spec, scope: 'Instance' } });
    const text = await show('breaker', 'reco');
    expect(text).toMatch(/^Scope: +Instance \(each agent decides alone\)$/m);
    expect(text).toMatch(/^State: +Partial$/m);
    expect(text).toMatch(/^Agents: +12 report this key$/m);
    expect(text).toMatch(/^Own breakers: +3 open, 0 half-open, 9 closed$/m);
    expect(text).not.toMatch(/^(Verdict|Probe permit|Transitions):/m);
  });

  it('a policy: every value in force with its default, who runs it, its breakers and conditions', async () => {
    server.put('breakers', sampleBreaker('reco.1a2b3c4d'));
    const policies = (generation: number, accepted: boolean, reason?: string) => [
      { name: 'reco', generation, accepted, ...(reason === undefined ? {} : { reason }) },
    ];
    server.put('agents', sampleAgent('1', { policies: policies(7, true) }));
    server.put('agents', sampleAgent('2', { policies: policies(6, true) }));
    server.put('agents', sampleAgent('3', { policies: policies(7, false, 'too old') }));
    const text = await show('policy', 'reco');
    expect(text).toContain('Generation:   7\n');
    expect(text).toContain('  Timeout:        10s in all, what is left of it for an attempt\n');
    expect(text).toContain('  Retry:          3 attempts in all\n');
    expect(text).toContain(
      '  Retry budget:   10% of first attempts, at least 10/s of the service, over 1m\n',
    );
    expect(text).toContain('  Bulkhead:       none: no limit\n');
    expect(text).toContain('  Recovery:  10% -> 25% -> 50% -> 100%, 5s a step\n');
    expect(text).toContain('  Fallback 1:  last good answer, at most 2m old, refreshes spread over 10%\n');
    expect(text.slice(text.indexOf('Agents:'))).toBe(`Agents:
  GENERATION   STATE     COUNT   AGENTS         REASON
  7            running   1       storefront.1
  7            refused   1       storefront.3   too old
  6            running   1       storefront.2
Breakers:
  NAME            STATE    SHARE   KEY
  reco.1a2b3c4d   Closed   100%    target
Conditions:
  TYPE          STATUS   REASON             MESSAGE
  Distributed   False    StillPropagating   1/2 agents
`);
  });

  it('an agent: what it runs, and what it refused', async () => {
    server.put(
      'agents',
      sampleAgent('1', {
        phase: 'Refused',
        policies: [{ name: 'reco', generation: 7, accepted: false, reason: 'too old' }],
      }),
    );
    const text = await show('agent/storefront.1');
    expect(text).toContain('Sync:          Refused\n');
    expect(text).toContain('  reco   7            refused   too old\n');
  });

  it('a name that begins nothing is not found, and tells what there is', async () => {
    server.put('breakers', sampleBreaker('reco.1a2b3c4d'));
    const { code, stderr } = await runCli(['describe', 'br', 'no', '-n', 'shop', '--server', server.url]);
    expect([code, stderr]).toEqual([
      1,
      'Error from server (NotFound): breakers.bulwark.dev "no" not found\nThere are: reco.1a2b3c4d\n',
    ]);
  });
});
