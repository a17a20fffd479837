import type { StoredVerdict } from '@bulwark/fleet';
import { StoreError } from '@bulwark/store';
import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryStore } from '../in-process/memory-store.js';
import { verdictKey } from './breaker-name.js';
import { VerdictWriter } from './verdict-writer.js';

const CLAIM = '/bulwark/claims/all';
let store: MemoryStore;
let written: string[];
let fenced: number;
let stop: AbortController;
let writer: VerdictWriter;

beforeEach(async () => {
  store = new MemoryStore();
  written = [];
  fenced = 0;
  stop = new AbortController();
  const claim = await store.commit({ conditions: [], writes: [{ kind: 'put', key: CLAIM, value: '{}' }] });
  writer = new VerdictWriter({
    store,
    claim: { key: CLAIM, createRevision: claim.revision },
    signal: stop.signal,
    found: new Map(),
    written: ({ key, version }) => written.push(`${key.policy}@${version.epoch}`),
    removed: ({ policy }) => written.push(`${policy} removed`),
    fenced: () => (fenced += 1),
  });
});

function verdict(policy: string, epoch: number): StoredVerdict {
  return {
    key: { namespace: 'shop', policy, key: 'target' },
    version: { era: 1, token: 2, epoch },
    state: 'open',
    share: 0,
    step: -1,
    permit: undefined,
    forced: undefined,
    reason: 'test',
    message: '',
    cooldownMs: 1,
    trips: 1,
    sinceUnixMs: 0,
    writtenUnixMs: 0,
    transitions: [],
  };
}

const stored = async (policy: string) => {
  const entry = await store.get(verdictKey({ namespace: 'shop', policy, key: 'target' }));
  return entry && (JSON.parse(entry.value) as StoredVerdict).version.epoch;
};

describe('the writer of verdicts', () => {
  it('puts what comes in one instant into one transaction', async () => {
    const before = await store.revision();
    for (let index = 0; index < 50; index += 1) writer.write(verdict(`p${index}`, 1));
    await writer.idle();
    expect(written).toHaveLength(50);
    expect(await store.revision()).toBe(before + 1);
  });

  it('splits what is more than a transaction can hold', async () => {
    for (let index = 0; index < 250; index += 1) writer.write(verdict(`p${index}`, 1));
    await writer.idle();
    expect(new Set(written).size).toBe(250);
  });

  it('goes on from each written state, and removes', async () => {
    writer.write(verdict('pay', 1));
    await writer.idle();
    writer.write(verdict('pay', 2));
    await writer.idle();
    expect(await stored('pay')).toBe(2);
    writer.remove(verdict('pay', 2).key);
    await writer.idle();
    expect(await stored('pay')).toBeUndefined();
    expect(written).toEqual(['pay@1', 'pay@2', 'pay removed']);
  });

  it('writes nothing once the claim is another one', async () => {
    await store.commit({ conditions: [], writes: [{ kind: 'delete', key: CLAIM }] });
    await store.commit({ conditions: [], writes: [{ kind: 'put', key: CLAIM, value: '{}' }] });
    writer.write(verdict('pay', 1));
    await writer.idle();
    expect([fenced, written, await stored('pay')]).toEqual([1, [], undefined]);
  });

  it('tries again while the store is away, and finds out what an unknown outcome was', async () => {
    store.failNext.set('commit', new StoreError('unavailable', 'away'));
    writer.write(verdict('pay', 1));
    await writer.idle();
    store.failNext.set('commit', new StoreError('unknown-outcome', 'no answer'));
    writer.write(verdict('pay', 2));
    await writer.idle();
    expect(written).toEqual(['pay@1', 'pay@2']);
    expect([fenced, await stored('pay')]).toEqual([0, 2]);
  });

  it('stops with what has not been written', async () => {
    store.failNext.set('commit', new StoreError('unavailable', 'away'));
    writer.write(verdict('pay', 1));
    stop.abort();
    await writer.idle();
    expect(written).toEqual([]);
  });
});
