import { describe, expect, it } from 'vitest';
import { DEFAULTS, type ResiliencePolicy } from '@bulwark/policy';
import { admittedShare, effectiveState } from './breakers.js';
import { percentText, rateText } from './numbers.js';
import type { AgentObject, BreakerObject } from './objects.js';
import { thresholdText } from './policies.js';
import { findResource } from './resources.js';
import { columnsFor, inOrder, rowFor, tableFor, type ObjectOf } from './table.js';

const NOW = Date.parse('2026-03-01T12:00:00Z');

type Status = BreakerObject['status'];

function breaker(name: string, status: Partial<Status> = {}): BreakerObject {
  return {
    apiVersion: 'bulwark.dev/v1',
    kind: 'Breaker',
    metadata: { name, namespace: 'shop' },
    spec: { policy: 'reco', key: 'target', scope: 'Fleet', target: 'recommendations', threshold: '50%/10s' },
    status: {
      state: 'Closed',
      era: 1,
      token: 7,
      epoch: 3,
      since: '2026-03-01T11:57:46Z',
      agents: { total: 12, open: 0, halfOpen: 0, closed: 12, synced: 12 },
      calls: { perSecond: 412, failureRatio: 0.382, rejectedPerSecond: 0 },
      transitions: [],
      ...status,
    },
  };
}

const policy: ResiliencePolicy = {
  apiVersion: 'bulwark.dev/v1',
  kind: 'ResiliencePolicy',
  metadata: { name: 'reco', namespace: 'shop', generation: 7, creationTimestamp: '2026-02-17T00:00:00Z' },
  spec: {
    target: { service: 'recommendations', operations: ['GET /v1/recs'] },
    timeout: { attempt: '800ms', total: '2s' },
    retry: { maxAttempts: 2 },
    circuitBreaker: { trip: { failureRate: { ratio: '50%' }, consecutiveFailures: 10 } },
    bulkhead: { maxConcurrent: 10, maxQueued: 20 },
    fallback: [{ lastGood: { maxAge: '120s' } }, { static: { body: '{}' } }],
  },
  status: {
    agents: { matched: 12, running: 10, refused: 1 },
    conditions: [{ type: 'Accepted', status: 'True' }],
  },
};

const agent: AgentObject = {
  apiVersion: 'bulwark.dev/v1',
  kind: 'Agent',
  metadata: { name: 'storefront.1', namespace: 'shop' },
  spec: { service: 'storefront', instance: '1', incarnation: 'a' },
  status: {
    phase: 'Synced',
    replica: 'one',
    version: '0.1.0',
    connectedAt: '2026-03-01T11:00:00Z',
    lastSeen: '2026-03-01T11:59:59Z',
    acked: '1.42',
    lagMs: 0,
    policies: [{ name: 'reco', generation: 7, accepted: true }],
  },
};

function shown(table: ReturnType<typeof tableFor>): Record<string, string>[] {
  return table.rows.map((row) =>
    Object.fromEntries(table.columnDefinitions.map((column, index) => [column.name, row.cells[index] ?? ''])),
  );
}

describe('tables', () => {
  it('a breaker shows what holds for calls, and its counts', () => {
    expect(shown(tableFor('breakers', [breaker('reco.1a2b3c4d')], { now: NOW }))[0]).toMatchObject({
      NAME: 'reco.1a2b3c4d',
      STATE: 'Closed',
      OPEN: '0/12',
      SHARE: '100%',
      'CALLS/S': '412.0',
      ERROR: '38.2%',
      'REJECTED/S': '0',
      SINCE: '2m14s',
      KEY: 'target',
    });
  });

  it('columns of rates say what they are averages of', () => {
    const live = columnsFor('breakers').filter(({ format }) => format === 'live');
    expect(live.map(({ name }) => name)).toEqual(['CALLS/S', 'ERROR', 'REJECTED/S']);
    for (const { description } of live) expect(description).toContain('the last 10 s');
  });

  it('C153: a breaker nobody reports has no data, which is not zero', () => {
    const agents = { total: 0, open: 0, halfOpen: 0, closed: 0, synced: 0 };
    const [row] = shown(tableFor('breakers', [breaker('a', { agents })], { now: NOW }));
    expect(row).toMatchObject({ OPEN: '-', 'CALLS/S': '-', ERROR: '-', 'REJECTED/S': '-' });
  });

  it('what a breaker waits for stands in the last column of a wide table', () => {
    const [said, silent] = shown(
      tableFor('breakers', [breaker('a', { note: 'waiting for demand' }), breaker('b')], { now: NOW }),
    );
    expect([said?.['NOTE'], silent?.['NOTE']]).toEqual(['waiting for demand', '-']);
    expect(columnsFor('breakers').at(-1)).toMatchObject({ name: 'NOTE', priority: 1, format: 'remark' });
  });

  it('OPEN counts who stops the calls: those that have an open verdict in force, else own breakers', () => {
    const agents = { total: 12, open: 2, halfOpen: 0, closed: 10, synced: 11 };
    const open = (status: Partial<Status>) =>
      shown(tableFor('breakers', [breaker('a', { agents, ...status })], { now: NOW }))[0]?.['OPEN'];
    expect(open({ state: 'Open' })).toBe('11/12');
    expect(open({ state: 'Recovering' })).toBe('2/12');
    expect(open({ state: 'Closed' })).toBe('2/12');
    expect(open({ forced: { state: 'Open', by: 'ann', reason: 'x' } })).toBe('11/12');
  });

  it('C153: a breaker without calls has no failure ratio', () => {
    const calls = { perSecond: 0, rejectedPerSecond: 0 };
    expect(shown(tableFor('breakers', [breaker('a', { calls })], { now: NOW }))[0]).toMatchObject({
      'CALLS/S': '0',
      ERROR: '-',
    });
  });

  it('a policy shows its guards, its generation and who runs it', () => {
    expect(shown(tableFor('resiliencepolicies', [policy], { now: NOW }))[0]).toEqual({
      NAME: 'reco',
      TARGET: 'recommendations (1 operation)',
      TIMEOUT: '800ms/2s',
      RETRY: '2 (10%)',
      BREAKER: '50%/10s or 10 consecutive',
      BULKHEAD: '10+20',
      GEN: '7',
      SYNCED: '10/12 (1 refused)',
      AGE: '12d',
      MODE: 'Enforce',
      CONTRACT: 'optional',
      SCOPE: 'Fleet',
      FALLBACK: 'lastGood,static',
      ROLLOUT: '-',
      CONDITIONS: 'Accepted',
    });
  });

  it('a policy in shadow mode says so where its breaker stands', () => {
    const spec = { ...policy.spec, mode: 'Shadow' as const };
    expect(shown(tableFor('resiliencepolicies', [{ ...policy, spec }], { now: NOW }))[0]?.['BREAKER']).toBe(
      '50%/10s or 10 consecutive (shadow)',
    );
  });

  it('a lost agent has no lag', () => {
    const lost = { ...agent, status: { ...agent.status, phase: 'Lost' as const } };
    const rows = shown(tableFor('agents', [agent, lost], { now: NOW }));
    expect(rows.map((row) => [row['SYNC'], row['LAG'], row['ACKED'], row['ZONE']])).toEqual([
      ['Synced', '0ms', '1.42', '-'],
      ['Lost', '-', '1.42', '-'],
    ]);
  });

  it('every row has a cell for every column, of ASCII on one line', () => {
    const forced = { state: 'Open', by: 'Änne\n', reason: 'x' } as const;
    const cells = [
      ...rowFor('breakers', breaker('a', { forced }), NOW),
      ...rowFor('resiliencepolicies', policy, NOW),
      ...rowFor('agents', agent, NOW),
    ];
    expect(cells).toHaveLength(
      columnsFor('breakers').length + columnsFor('resiliencepolicies').length + columnsFor('agents').length,
    );
    for (const cell of cells) expect(cell).toMatch(/^[ -~]+$/);
  });

  it('rows carry metadata, the object or nothing, as asked', () => {
    const kinds = (['Metadata', 'Object', 'None'] as const).map((includeObject) => {
      const [row] = tableFor('agents', [agent], { now: NOW, includeObject }).rows;
      return (row?.object as { kind?: string } | undefined)?.kind;
    });
    expect(kinds).toEqual(['PartialObjectMetadata', 'Agent', undefined]);
    expect(tableFor('agents', [], { now: NOW, columns: false }).columnDefinitions).toEqual([]);
  });
});

describe('breakers', () => {
  it('come worst first: state, then failures, then calls, then name', () => {
    const agents = { total: 12, open: 2, halfOpen: 0, closed: 10, synced: 12 };
    const calls = (failureRatio: number, perSecond = 1) => ({
      failureRatio,
      perSecond,
      rejectedPerSecond: 0,
    });
    const all = [
      breaker('closed-b', { calls: calls(0) }),
      breaker('closed-a', { calls: calls(0) }),
      breaker('closed-busy', { calls: calls(0, 9) }),
      breaker('closed-failing', { calls: calls(0.2) }),
      breaker('partial', { agents }),
      breaker('recovering', { state: 'Recovering', share: '25%' }),
      breaker('half', { state: 'HalfOpen' }),
      breaker('forced', { forced: { state: 'Open', by: 'ann', reason: 'x' } }),
      breaker('open', { state: 'Open' }),
    ];
    expect(inOrder('breakers', all).map((one) => one.metadata.name)).toEqual([
      'open',
      'forced',
      'half',
      'recovering',
      'partial',
      'closed-failing',
      'closed-busy',
      'closed-a',
      'closed-b',
    ]);
  });

  it('a forced state is shown before the computed one, and the share that passes follows it', () => {
    const forced = breaker('a', { state: 'Open', forced: { state: 'Closed', by: 'ann', reason: 'x' } });
    expect([effectiveState(forced), admittedShare(forced)]).toEqual(['ForcedClosed', '100%']);
    expect(admittedShare(breaker('a', { state: 'Recovering', share: '25%' }))).toBe('25%');
    expect(admittedShare(breaker('a', { state: 'HalfOpen' }))).toBe('probe');
  });
});

describe('breakers of scope Instance', () => {
  it('show how many agents stop their calls, and nothing of a verdict, which they have none of', () => {
    const instance = (open: number): BreakerObject => {
      const agents = { total: 12, open, halfOpen: 0, closed: 12 - open, synced: 0 };
      const one = breaker('a', { agents, epoch: 0, era: 0, token: 0 });
      return { ...one, spec: { ...one.spec, scope: 'Instance' } };
    };
    const [some, none] = shown(tableFor('breakers', [instance(3), instance(0)], { now: NOW }));
    expect(some).toMatchObject({ STATE: 'Partial', OPEN: '3/12', SHARE: '-', SCOPE: 'Instance' });
    expect(none).toMatchObject({ STATE: 'Closed', OPEN: '0/12', SHARE: '100%' });
    expect(some).toMatchObject({ COMPUTED: '-', SYNCED: '-', EPOCH: '-' });
  });
});

describe('breakers in shadow mode', () => {
  const shadow = (name: string, status: Partial<Status> = {}): BreakerObject => {
    const enforced = breaker(name, status);
    return { ...enforced, spec: { ...enforced.spec, mode: 'Shadow' } };
  };

  it('are never taken for an outage: the state says Shadow, and all calls pass', () => {
    const rows = shown(
      tableFor(
        'breakers',
        [
          shadow('forced', { forced: { state: 'Open', by: 'ann', reason: 'x' } }),
          shadow('half', { state: 'HalfOpen' }),
          shadow('open', { state: 'Open' }),
          shadow('closed'),
        ],
        { now: NOW },
      ),
    );
    expect(rows.map((row) => [row['STATE'], row['SHARE']])).toEqual([
      ['Shadow(Open)', '100%'],
      ['Shadow(ForcedOpen)', '100%'],
      ['Shadow(HalfOpen)', '100%'],
      ['Shadow(Closed)', '100%'],
    ]);
  });

  it('come after those that are enforced', () => {
    const all = [shadow('shadow', { state: 'Open' }), breaker('closed')];
    expect(inOrder('breakers', all).map((one) => one.metadata.name)).toEqual(['closed', 'shadow']);
  });
});

describe('words and numbers', () => {
  it('what a table shows for absent fields is what the policy library takes for them', () => {
    const spec = {
      target: { service: 'a' },
      retry: {},
      circuitBreaker: { trip: { failureRate: { ratio: '5%' } } },
    };
    const [row] = shown(tableFor('resiliencepolicies', [{ ...policy, spec }], { now: NOW }));
    const { timeout, retry, circuitBreaker, mode, contract } = DEFAULTS;
    expect(row).toMatchObject({
      TIMEOUT: timeout.total,
      RETRY: `${retry.maxAttempts} (${retry.budget.ratio})`,
      BREAKER: `5%/${circuitBreaker.window}`,
      SCOPE: circuitBreaker.scope,
      MODE: mode,
      CONTRACT: contract,
    });
  });

  it('thresholds are written short', () => {
    expect(thresholdText({ slowRate: { ratio: '80%', slowerThan: '500ms', window: '30s' } })).toBe(
      'slow 80%>500ms/30s',
    );
    expect(thresholdText({ failureRate: { ratio: '50%', window: { calls: 20 } } })).toBe('50%/20 calls');
  });

  it('something is never written as nothing, nor nearly all as all', () => {
    expect([0, 0.0001, 0.5, 0.9999, 1, undefined].map(percentText)).toEqual([
      '0.0%',
      '<0.1%',
      '50.0%',
      '>99.9%',
      '100.0%',
      '-',
    ]);
    expect([0, 0.01, 2, 2_100, 3_400_000, undefined].map(rateText)).toEqual([
      '0',
      '<0.1',
      '2.0',
      '2.1k',
      '3.4M',
      '-',
    ]);
  });

  it('kinds are found by every name people use', () => {
    for (const word of [
      'rp',
      'policy',
      'policies',
      'resiliencepolicy',
      'ResiliencePolicies',
      'resiliencepolicies.bulwark.dev',
    ])
      expect(findResource(word)?.kind).toBe('ResiliencePolicy');
    expect(findResource('br')?.plural).toBe('breakers');
    expect(findResource('ag')?.plural).toBe('agents');
    expect(findResource('pods')).toBeUndefined();
  });
});

describe('an object of another version', () => {
  it('is shown as far as it can be read, and the rows beside it whole', () => {
    const odd = {
      apiVersion: 'bulwark.dev/v1',
      kind: 'ResiliencePolicy',
      metadata: { name: 'odd', namespace: 'shop', generation: 3 },
      spec: { retry: { maxAttempts: 2 } },
    } as unknown as ObjectOf['resiliencepolicies'];
    const table = tableFor('resiliencepolicies', [odd], { now: 0 });
    const cell = (name: string) =>
      table.rows[0]?.cells[table.columnDefinitions.findIndex((column) => column.name === name)];
    expect([cell('NAME'), cell('TARGET'), cell('RETRY'), cell('GEN')]).toEqual([
      'odd',
      '<unknown>',
      '2 (10%)',
      '3',
    ]);
    const bare = { ...odd, spec: undefined } as unknown as ObjectOf['resiliencepolicies'];
    expect(tableFor('resiliencepolicies', [bare], { now: 0 }).rows[0]?.cells[0]).toBe('odd');
  });
});
