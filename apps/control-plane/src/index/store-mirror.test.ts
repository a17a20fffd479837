import { StoreError } from '@bulwark/store';
import { createLogger } from '@bulwark/telemetry';
import { eventually } from '@bulwark/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MemoryStore } from '../in-process/memory-store.js';
import { StoreMirror, type MirrorChange } from './store-mirror.js';

const logger = createLogger({ name: 'test', level: 'silent' });
let store: MemoryStore;
let mirror: StoreMirror;
let changes: MirrorChange[];
let gaps: number[];
let backwards: string[];

beforeEach(async () => {
  store = new MemoryStore();
  await put('/a/team/1', 'one');
  await put('/a/team-b/1', 'other team');
  mirror = new StoreMirror({ store, prefix: '/a/team/', logger });
  changes = [];
  gaps = [];
  backwards = [];
  mirror.listen({
    changed: (batch) => changes.push(...batch),
    gap: (revision) => gaps.push(revision),
    wentBack: (from, to) => backwards.push(`${from} to ${to}`),
  });
  mirror.start();
  await eventually(() => mirror.loaded);
});

afterEach(() => mirror.stop());

const put = (key: string, value: string) =>
  store.commit({ conditions: [], writes: [{ kind: 'put', key, value }] });
const told = () => changes.map(({ key, entry }) => `${key}=${entry?.value ?? 'gone'}`);

describe('the mirror of a prefix', () => {
  it('lists and then follows, and never sees a neighbour whose name begins alike', async () => {
    await put('/a/team/2', 'two');
    await put('/a/team-b/2', 'not ours');
    await store.commit({ conditions: [], writes: [{ kind: 'delete', key: '/a/team/1' }] });
    await eventually(() => changes.length === 3);
    expect(told()).toEqual(['/a/team/1=one', '/a/team/2=two', '/a/team/1=gone']);
    expect([...mirror.entries.keys()]).toEqual(['/a/team/2']);
    expect(changes[2]?.previous?.value).toBe('one');
  });

  it('lists again when the history is gone, and tells the difference, deletions included', async () => {
    store.silently((entries) => {
      entries.delete('/a/team/1');
      entries.set('/a/team/9', { key: '/a/team/9', value: 'nine', createRevision: 40, modRevision: 40 });
    }, 50);
    store.breakWatches(new StoreError('compacted', 'history is gone'));
    await eventually(() => changes.length === 3);
    expect(told().slice(1)).toEqual(['/a/team/9=nine', '/a/team/1=gone']);
    expect(mirror.revision).toBe(50);
    expect(gaps).toEqual([3, 50]);
    expect(backwards).toEqual([]);
    await put('/a/team/10', 'goes on');
    await eventually(() => mirror.entries.has('/a/team/10'));
  });

  it('notices that the store went back to an older state', async () => {
    store.silently((entries) => entries.delete('/a/team/1'), 2);
    store.breakWatches(new StoreError('compacted', 'restored'));
    await eventually(() => backwards.length === 1);
    expect(backwards).toEqual(['3 to 2']);
    expect(mirror.entries.size).toBe(0);
    expect(mirror.revision).toBe(2);
  });

  it('lets one wait for a revision, which may be one that changed nothing here', async () => {
    const reached = mirror.reach(4, 2_000);
    await put('/a/team/2', 'two');
    expect(await reached).toBe(true);
    await put('/elsewhere/1', 'x');
    expect(await mirror.reach(5, 20)).toBe(false);
    expect(await mirror.confirm(5, 400)).toBe('reached');
    expect(await mirror.confirm(1_000, 80)).toBe('absent');
  });

  it('tells a store that is older from a watch that is late', async () => {
    store.silently((entries) => {
      entries.set('/a/team/2', { key: '/a/team/2', value: 'x', createRevision: 7, modRevision: 7 });
    }, 8);
    expect(await mirror.confirm(7, 80)).toBe('behind');
    expect(await mirror.confirm(9, 80)).toBe('absent');
    expect(mirror.revision).toBe(3);
  });

  it('lists the store once for all who ask at the same time', async () => {
    await put('/elsewhere/1', 'x');
    const list = vi.spyOn(store, 'list');
    const answers = await Promise.all(Array.from({ length: 500 }, () => mirror.confirm(4, 80)));
    expect(new Set(answers)).toEqual(new Set(['reached']));
    expect(list).toHaveBeenCalledTimes(1);
  });

  it('finds by comparing what a watch lost without a word', async () => {
    const watchful = new StoreMirror({ store, prefix: '/a/', logger, compareEveryMs: 50 });
    watchful.start();
    await eventually(() => watchful.loaded);
    store.silently((entries) => entries.delete('/a/team/1'), 9);
    await eventually(() => watchful.entries.size === 1);
    expect(watchful.revision).toBe(9);
    await watchful.stop();
  });

  it('tells the others when one listener fails', async () => {
    const heard: string[] = [];
    mirror.listen({
      changed: () => {
        throw new Error('a defect');
      },
    });
    mirror.listen({ changed: ([change]) => heard.push(change?.key ?? '') });
    await put('/a/team/2', 'two');
    await put('/a/team/3', 'three');
    await eventually(() => heard.length === 2);
    expect(heard).toEqual(['/a/team/2', '/a/team/3']);
  });

  it('tries again when the store does not answer', async () => {
    const late = new StoreMirror({ store, prefix: '/a/', logger });
    store.failNext.set('list', new StoreError('unavailable', 'away'));
    late.start();
    await eventually(() => late.loaded);
    expect(late.entries.size).toBe(2);
    await late.stop();
  });
});
