import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  eventually,
  startEtcd,
  startTcpProxy,
  temporaryDirectory,
  type Etcd,
  type TcpProxy,
} from '@bulwark/testing';
import { Etcd3 } from 'etcd3';
import { afterEach, describe, expect, test } from 'vitest';
import { brief, codeOf, put, record, remove, write } from '../conformance/fixture.conformance.js';
import { StoreError } from '../store-error.js';
import type { Store, Write } from '../store.js';
import { openEtcdStore, type EtcdStoreOptions } from './etcd-store.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const each of cleanups.splice(0).reverse()) await each();
});

async function etcdOf(options?: Parameters<typeof startEtcd>[0]): Promise<Etcd> {
  const etcd = await startEtcd(options);
  cleanups.push(() => etcd.stop());
  return etcd;
}

async function proxyTo(etcd: Etcd): Promise<TcpProxy> {
  const proxy = await startTcpProxy({ target: etcd.endpoint });
  cleanups.push(() => proxy.close());
  return proxy;
}

async function storeAt(
  endpoint: string | readonly string[],
  options: Partial<EtcdStoreOptions> = {},
): Promise<Store> {
  const endpoints = typeof endpoint === 'string' ? [endpoint] : endpoint;
  const store = await openEtcdStore({ endpoints, timeoutMs: 2000, ...options });
  cleanups.push(() => store.close());
  return store;
}

const atProxy = (proxy: TcpProxy) => `http://${proxy.address}`;

async function elapsed(ms: number): Promise<void> {
  const until = performance.now() + ms;
  await eventually(() => performance.now() >= until, { withinMs: ms + 1000 });
}

async function compactAt(endpoint: string, revision: number): Promise<void> {
  const client = new Etcd3({ hosts: endpoint });
  await client.kv.compact({ revision, physical: true });
  client.close();
}

/** Writes /t/0, /t/1 … until stopped; whatever fails is tried again under the next name. */
function writeOn(store: Store): { readonly acknowledged: number[]; stop(): Promise<void> } {
  const acknowledged: number[] = [];
  let writing = true;
  const loop = (async () => {
    for (let turn = 0; writing; turn += 1) {
      try {
        acknowledged.push(await write(store, put(`/t/${turn}`, String(turn))));
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        await elapsed(20);
      }
    }
  })();
  return {
    acknowledged,
    stop: async () => {
      writing = false;
      await loop;
    },
  };
}

function expectEachOnce(revisions: readonly number[], acknowledged: readonly number[]): void {
  expect(revisions).toEqual([...new Set(revisions)].sort((a, b) => a - b));
  expect(acknowledged.filter((revision) => !revisions.includes(revision))).toEqual([]);
}

describe('a watch on etcd', () => {
  test('loses and doubles nothing when etcd is killed and comes back, and resumes within a second', async () => {
    const etcd = await etcdOf();
    const store = await storeAt(etcd.endpoint);
    const watch = record(store, '/t/', await store.revision());
    const writer = writeOn(store);
    const resumedMs: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const seen = watch.batches.length;
      await eventually(() => watch.batches.length > seen + 5);
      await etcd.kill();
      const before = watch.batches.length;
      await etcd.start();
      const back = performance.now();
      await eventually(() => watch.batches.length > before, { everyMs: 2 });
      resumedMs.push(Math.round(performance.now() - back));
    }
    await writer.stop();
    await watch.until(writer.acknowledged.at(-1) ?? 0);
    watch.stop();
    expectEachOnce(
      watch.batches.map(({ revision }) => revision),
      writer.acknowledged,
    );
    console.log(
      `resumed ${resumedMs.join(', ')} ms after etcd served again; ${writer.acknowledged.length} writes`,
    );
    expect(Math.max(...resumedMs)).toBeLessThan(1000);
  });

  test('goes on after etcd stood still for 3 s', async () => {
    const etcd = await etcdOf();
    const store = await storeAt(etcd.endpoint);
    const watch = record(store, '/t/', await store.revision());
    const writer = writeOn(store);
    await eventually(() => watch.batches.length > 5);
    etcd.pause();
    await elapsed(3000);
    const before = watch.batches.length;
    etcd.resume();
    const back = performance.now();
    await eventually(() => watch.batches.length > before + 5, { everyMs: 2 });
    expect(performance.now() - back).toBeLessThan(1500);
    await writer.stop();
    await watch.until(writer.acknowledged.at(-1) ?? 0);
    watch.stop();
    expectEachOnce(
      watch.batches.map(({ revision }) => revision),
      writer.acknowledged,
    );
  });

  test('resumes within a second after its link was cut, from the last revision', async () => {
    const etcd = await etcdOf();
    const proxy = await proxyTo(etcd);
    const [store, other] = [await storeAt(atProxy(proxy)), await storeAt(etcd.endpoint)];
    const watch = record(store, '/t/', await store.revision());
    const revisions = [];
    for (let round = 0; round < 4; round += 1) {
      revisions.push(await write(other, put('/t/a', `linked ${round}`)));
      await watch.until(revisions.at(-1) ?? 0);
      proxy.cut();
      revisions.push(await write(other, put('/t/a', `cut ${round}`)), await write(other, remove('/t/a')));
      await elapsed(300 * round);
      expect(watch.batches.at(-1)?.revision).toBe(revisions.at(-3));
      proxy.resume();
      await watch.until(revisions.at(-1) ?? 0, 1000);
    }
    watch.stop();
    expect(watch.batches.map(({ revision }) => revision)).toEqual(revisions);
  });

  test('notices a link that is dead without being closed, and another endpoint takes over', async () => {
    const etcd = await etcdOf();
    const [first, second] = [await proxyTo(etcd), await proxyTo(etcd)];
    const store = await storeAt([atProxy(first), atProxy(second)]);
    const other = await storeAt(etcd.endpoint);
    const watch = record(store, '/t/', await store.revision());
    await watch.until(await write(other, put('/t/a', '1')));
    first.pause();
    const revision = await write(other, put('/t/a', '2'));
    await watch.until(revision, 12_000);
    expect(await store.get('/t/a')).toMatchObject({ value: '2' });
    watch.stop();
  });

  test('compacted while its link was cut: it says so, and a listing shows what is gone', async () => {
    const etcd = await etcdOf();
    const proxy = await proxyTo(etcd);
    const [store, other] = [await storeAt(atProxy(proxy)), await storeAt(etcd.endpoint)];
    await write(other, put('/t/gone'), put('/t/stays'));
    const { entries: before, revision } = await store.list('/t/');
    const watch = record(store, '/t/', revision);
    await watch.until(await write(other, put('/t/first')));
    proxy.cut();
    for (let turn = 0; turn < 1000; turn += 1) await write(other, put('/t/busy', String(turn)));
    await compactAt(etcd.endpoint, await write(other, remove('/t/gone')));
    proxy.resume();
    expect(await watch.ended).toBe('compacted');
    const after = await eventually(() => store.list('/t/'));
    const left = new Set(after.entries.map(({ key }) => key));
    expect(before.map(({ key }) => key).filter((key) => !left.has(key))).toEqual(['/t/gone']);
    expect([...left]).toEqual(['/t/busy', '/t/first', '/t/stays']);
  });

  test('compacted exactly at the deletion it missed: it says so, too', async () => {
    const etcd = await etcdOf();
    const proxy = await proxyTo(etcd);
    const [store, other] = [await storeAt(atProxy(proxy)), await storeAt(etcd.endpoint)];
    const watch = record(store, '/t/', await store.revision());
    await watch.until(await write(other, put('/t/gone')));
    proxy.cut();
    await compactAt(etcd.endpoint, await write(other, remove('/t/gone')));
    proxy.resume();
    expect(await watch.ended).toBe('compacted');
  });

  test('ends with "compacted" when etcd comes back from an older backup', async () => {
    const scratch = temporaryDirectory('restore');
    cleanups.push(scratch.remove);
    const dataDir = join(scratch.path, 'data');
    const etcd = await etcdOf({ dataDir });
    const store = await storeAt(etcd.endpoint);
    await write(store, put('/t/a', 'old'));
    await etcd.kill();
    cpSync(dataDir, join(scratch.path, 'backup'), { recursive: true });
    await etcd.start();
    await eventually(() => store.revision());
    for (let turn = 0; turn < 10; turn += 1) await write(store, put('/t/a', 'new'));
    const watches = [record(store, '/t/', await store.revision()), record(store, '/u/', 1)];
    await etcd.kill();
    rmSync(dataDir, { recursive: true });
    cpSync(join(scratch.path, 'backup'), dataDir, { recursive: true });
    await etcd.start();
    expect(await Promise.all(watches.map(({ ended }) => ended))).toEqual(['compacted', 'compacted']);
    const { entries, revision } = await eventually(() => store.list('/t/'));
    expect(entries.map(({ value }) => value)).toEqual(['old']);
    const watch = record(store, '/t/', revision);
    await watch.until(await write(store, put('/t/a', 'newer')));
    expect(watch.batches.map(brief)).toEqual([`${revision + 1} +/t/a=newer`]);
    watch.stop();
  });

  test('may begin while etcd is away, and can be ended then', async () => {
    const etcd = await etcdOf();
    const store = await storeAt(etcd.endpoint);
    const before = await store.revision();
    await etcd.kill();
    const [stopped, patient] = [record(store, '/t/', before), record(store, '/t/', before)];
    await elapsed(400);
    stopped.stop();
    expect(await stopped.ended).toBe('silently');
    await etcd.start();
    const revision = await eventually(() => write(store, put('/t/a')));
    await patient.until(revision, 1000);
    patient.stop();
  });

  test('ends at once when aborted while etcd stands still', async () => {
    const etcd = await etcdOf();
    const store = await storeAt(etcd.endpoint, { timeoutMs: 5000 });
    const revision = await store.revision();
    const running = record(store, '/t/', revision);
    await running.until(await write(store, put('/t/a')));
    etcd.pause();
    const beginning = record(store, '/t/', revision);
    await elapsed(50);
    const aborted = performance.now();
    running.stop();
    beginning.stop();
    expect(await Promise.all([running.ended, beginning.ended])).toEqual(['silently', 'silently']);
    expect(performance.now() - aborted).toBeLessThan(200);
  });
});

describe('leases on etcd', () => {
  const under = (lease: Awaited<ReturnType<Store['lease']>>, key: string): Write => ({
    kind: 'put',
    key,
    value: '',
    lease,
  });

  test('are lost to their holder when etcd stands still for longer than they live, before etcd lets them lapse', async () => {
    const etcd = await etcdOf();
    const store = await storeAt(etcd.endpoint);
    const ttlMs = 2000;
    const lease = await store.lease(ttlMs);
    await write(store, under(lease, '/t/claim'));
    etcd.pause();
    const paused = performance.now();
    await eventually(() => lease.lost.aborted, { withinMs: ttlMs + 500 });
    const knownMs = performance.now() - paused;
    // From the last keep-alive on, which was at most a third of the time to live before.
    expect(knownMs).toBeGreaterThan(ttlMs * 0.5);
    expect(knownMs).toBeLessThan(ttlMs);
    expect(lease.lost.reason).toMatchObject({ code: 'lease-lost' });
    expect(await codeOf(() => write(store, under(lease, '/t/late')))).toBe('lease-lost');
    etcd.resume();
    const next = await eventually(() => store.lease(ttlMs), { withinMs: 5000 });
    await eventually(() => write(store, under(next, '/t/claim')));
    await eventually(async () => (await store.get('/t/late')) === undefined);
    await next.release();
    expect(await store.get('/t/claim')).toBeUndefined();
  });

  test('outlive a restart of etcd that is shorter than they live', async () => {
    const etcd = await etcdOf();
    const store = await storeAt(etcd.endpoint);
    const lease = await store.lease(10_000);
    await write(store, under(lease, '/t/claim'));
    await etcd.kill();
    await etcd.start();
    await elapsed(4000);
    expect(lease.lost.aborted).toBe(false);
    await write(store, under(lease, '/t/more'));
    await lease.release();
    expect((await store.list('/t/')).entries).toEqual([]);
  });

  test('a release without etcd says so, and the keys go with the time to live', async () => {
    const etcd = await etcdOf();
    const proxy = await proxyTo(etcd);
    const [store, other] = [await storeAt(atProxy(proxy), { timeoutMs: 500 }), await storeAt(etcd.endpoint)];
    const lease = await store.lease(2000);
    await write(store, under(lease, '/t/claim'));
    proxy.cut();
    expect(await codeOf(() => lease.release())).toBe('unavailable');
    expect(lease.lost.aborted).toBe(true);
    expect(await other.get('/t/claim')).toBeDefined();
    await eventually(async () => (await other.get('/t/claim')) === undefined, { withinMs: 6000 });
  });
});

describe('calls to etcd', () => {
  test('tell a write that may have happened from one that has not', async () => {
    const etcd = await etcdOf();
    const proxy = await proxyTo(etcd);
    const [store, other] = [await storeAt(atProxy(proxy), { timeoutMs: 1000 }), await storeAt(etcd.endpoint)];
    await write(store, put('/t/a', 'before'));
    proxy.slow(200);
    const inFlight = codeOf(() => write(store, put('/t/a', 'in flight')));
    await eventually(async () => (await other.get('/t/a'))?.value === 'in flight');
    proxy.cut();
    expect(await inFlight).toBe('unknown-outcome');
    proxy.slow(0);
    expect(await codeOf(() => write(store, put('/t/a', 'refused')))).toBe('unavailable');
    expect(await codeOf(() => store.get('/t/a'))).toBe('unavailable');
    proxy.resume();
    const entry = await eventually(() => store.get('/t/a'), { withinMs: 1000 });
    expect(entry).toMatchObject({ value: 'in flight' });
  });

  test('all end within their time when nothing answers, and so does closing', async () => {
    const etcd = await etcdOf();
    const store = await storeAt(etcd.endpoint, { timeoutMs: 700 });
    const lease = await store.lease(60_000);
    const watch = record(store, '/t/', await store.revision());
    etcd.pause();
    const started = performance.now();
    const codes = await Promise.all([
      codeOf(() => store.get('/t/a')),
      codeOf(() => store.list('/t/')),
      codeOf(() => store.revision()),
      codeOf(() => store.lease(5000)),
      codeOf(() => write(store, put('/t/a'))),
    ]);
    expect(codes).toEqual([...Array.from({ length: 4 }, () => 'unavailable'), 'unknown-outcome']);
    expect(performance.now() - started).toBeLessThan(1500);
    await store.close();
    expect(performance.now() - started).toBeLessThan(3000);
    expect(lease.lost.aborted).toBe(true);
    expect(await watch.ended).toBe('closed');
  });

  test('go to another endpoint when the first is dead: at once, and from the start', async () => {
    const etcd = await etcdOf();
    const [first, second] = [await proxyTo(etcd), await proxyTo(etcd)];
    first.cut();
    const store = await storeAt([atProxy(first), atProxy(second)]);
    await write(store, put('/t/a', '1'));
    const watch = record(store, '/t/', await store.revision());
    first.resume();
    second.cut();
    // A read may be asked again elsewhere; a write is not, once it may have arrived.
    expect(await store.get('/t/a')).toMatchObject({ value: '1' });
    await watch.until(await write(store, put('/t/a', '2')), 1000);
    watch.stop();
  });
});
