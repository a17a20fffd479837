import { StoreError } from '@bulwark/store';
import { createLogger } from '@bulwark/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MemoryStore } from '../in-process/memory-store.js';
import { ScriptedDecider } from '../in-process/scripted-decider.js';
import { DeciderHost } from './decider-host.js';

const CLAIM = '/bulwark/claims/all';
const KEY = { namespace: 'shop', policy: 'pay', key: 'target' };
const FORCED = { state: 'open', remainingMs: 60_000, by: 'ann', reason: 'drill' } as const;
let store: MemoryStore;
let host: DeciderHost;

beforeEach(async () => {
  store = new MemoryStore();
  const claim = await store.commit({ conditions: [], writes: [{ kind: 'put', key: CLAIM, value: '{}' }] });
  host = new DeciderHost({
    createDecider: (options) => new ScriptedDecider(options),
    era: 1,
    claim: { key: CLAIM, createRevision: claim.revision, lost: new AbortController().signal },
    store,
    found: [],
    foundRevisions: new Map(),
    audience: { push: () => undefined, remove: () => undefined, poll: () => undefined },
    logger: createLogger({ name: 'test', level: 'silent' }),
    fenced: () => host.stop(),
  });
});

afterEach(() => {
  host.stop();
  vi.useRealTimers();
});

describe('a force', () => {
  it('is over when it is stored', async () => {
    await host.force(KEY, FORCED);
    expect((await store.list('/bulwark/verdicts/')).entries).toHaveLength(1);
  });

  it('that the store refuses, since another replica decides, is no success', async () => {
    await store.commit({ conditions: [], writes: [{ kind: 'delete', key: CLAIM }] });
    await expect(host.force(KEY, FORCED)).rejects.toMatchObject({ reason: 'ServiceUnavailable' });
  });

  it('does not wait for ever for a store that is away', async () => {
    vi.useFakeTimers();
    vi.spyOn(store, 'commit').mockRejectedValue(new StoreError('unavailable', 'away'));
    const forcing = expect(host.force(KEY, FORCED)).rejects.toMatchObject({ reason: 'ServiceUnavailable' });
    await vi.advanceTimersByTimeAsync(3_100);
    await forcing;
  });
});
