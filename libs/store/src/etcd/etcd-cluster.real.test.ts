import { eventually, startEtcdCluster, type EtcdCluster } from '@bulwark/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { codeOf, put, record, write } from '../conformance/fixture.conformance.js';
import { StoreError } from '../store-error.js';
import type { Store } from '../store.js';
import { openEtcdStore } from './etcd-store.js';

let cluster: EtcdCluster;
const open: Store[] = [];
beforeEach(async () => {
  cluster = await startEtcdCluster();
});
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  await cluster.stop();
});

async function storeAt(endpoints: readonly string[]): Promise<Store> {
  const store = await openEtcdStore({ endpoints, timeoutMs: 3000 });
  open.push(store);
  return store;
}

/** Counts /t/counter up by compare and write; a write of unknown fate is looked up before it is tried again. */
async function count(store: Store, to: number): Promise<void> {
  for (;;) {
    try {
      const entry = await store.get('/t/counter');
      const value = Number(entry?.value ?? 0);
      if (value >= to) return;
      const conditions = [{ key: '/t/counter', modRevision: entry?.modRevision ?? 0 }];
      await store.commit({ conditions, writes: [put('/t/counter', String(value + 1))] });
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
    }
  }
}

describe('a cluster of three', () => {
  test('loses its leader while one counts: every number is delivered once, in order', async () => {
    const store = await storeAt(cluster.endpoints);
    const watch = record(store, '/t/', await store.revision());
    const values = () =>
      watch.batches.map(({ changes: [change] }) => (change?.kind === 'put' ? change.entry.value : ''));
    const counting = count(store, 400);
    for (const at of [50, 150]) {
      await eventually(() => watch.batches.length > at, { withinMs: 20_000 });
      const leader = await cluster.leader();
      await leader.kill();
      const killed = performance.now();
      const before = watch.batches.length;
      await eventually(() => watch.batches.length > before + 3, { withinMs: 15_000 });
      console.log(`changes again ${Math.round(performance.now() - killed)} ms after the leader was killed`);
      await leader.start();
    }
    await counting;
    await eventually(() => watch.batches.length >= 400, { withinMs: 10_000 });
    watch.stop();
    expect(values()).toEqual(Array.from({ length: 400 }, (_, at) => String(at + 1)));
  });

  test('with a member that is cut off from the others: its watches and reads move on', async () => {
    const leader = await cluster.leader();
    const alone = cluster.members.find((member) => member !== leader);
    const others = cluster.members.filter((member) => member !== alone);
    if (alone === undefined) throw new Error('No follower');
    const store = await storeAt([alone.endpoint, ...others.map(({ endpoint }) => endpoint)]);
    const watch = record(store, '/t/', await store.revision());
    await watch.until(await write(store, put('/t/a', '1')));
    // Without the others it has no majority (an answer of theirs may still be under way); then they go on without it.
    for (const member of others) member.pause();
    await eventually(async () => (await codeOf(() => store.get('/t/a'))) === 'unavailable', {
      withinMs: 15_000,
    });
    alone.pause();
    for (const member of others) member.resume();
    const other = await storeAt(others.map(({ endpoint }) => endpoint));
    const revision = await eventually(() => write(other, put('/t/a', '2')), { withinMs: 15_000 });
    await watch.until(revision, 15_000);
    expect(await store.get('/t/a')).toMatchObject({ value: '2' });
    watch.stop();
    alone.resume();
  });
});
