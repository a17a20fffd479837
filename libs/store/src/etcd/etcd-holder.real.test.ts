import { existsSync } from 'node:fs';
import { eventually, startEtcd, startProcess, type Etcd } from '@bulwark/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openEtcdStore } from './etcd-store.js';

const built = new URL('../../dist/index.js', import.meta.url);
const ttlMs = 2000;

/** Holds /t/claim under a lease, and takes it again whenever the lease is lost. Tries to write every 20 ms. */
const holder = `
  import { openEtcdStore } from ${JSON.stringify(built.href)};
  const store = await openEtcdStore({ endpoints: [process.argv[1]] });
  const key = '/t/claim';
  const take = async () => {
    const lease = await store.lease(${ttlMs});
    const writes = [{ kind: 'put', key, value: lease.id, lease }];
    const { committed } = await store.commit({ conditions: [{ key, modRevision: 0 }], writes });
    if (committed) return lease;
    await lease.release();
  };
  for (let turn = 1; ; turn += 1) {
    const lease = await take();
    if (lease === undefined) continue;
    console.log('held ' + turn);
    while (true) {
      const write = { kind: 'put', key: '/t/work', value: lease.id, lease };
      const failed = await store.commit({ conditions: [], writes: [write] }).then(() => undefined, (error) => error.code);
      if (failed) console.log('refused ' + failed + ', known lost: ' + lease.lost.aborted);
      if (failed) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
`;

let etcd: Etcd;
beforeEach(async () => {
  if (!existsSync(built)) throw new Error('This test runs the built library: tsc -b libs/store');
  etcd = await startEtcd();
});
afterEach(() => etcd.stop());

test('a holder that stood still for twice the time to live writes nothing late, and takes its claim again', async () => {
  const store = await openEtcdStore({ endpoints: [etcd.endpoint] });
  await using child = await startProcess({
    command: process.execPath,
    args: ['--input-type=module', '-e', holder, etcd.endpoint],
    readyLine: 'held 1',
  });
  await eventually(async () => (await store.get('/t/work')) !== undefined);
  const first = await store.get('/t/claim');
  child.pause();
  const paused = performance.now();
  await eventually(async () => (await store.get('/t/claim')) === undefined, { withinMs: 2 * ttlMs });
  await eventually(() => performance.now() - paused > 2 * ttlMs, { withinMs: 2 * ttlMs });
  expect((await store.list('/t/')).entries).toEqual([]);
  child.resume();
  const woken = performance.now();
  await child.waitForLine(/^held [2-9]/, { withinMs: 2000 });
  expect(performance.now() - woken).toBeLessThan(1000);
  expect(child.stdout()).toMatch(/^held 1\nrefused lease-lost, known lost: true\nheld 2\n/);
  const { entries } = await store.list('/t/');
  expect(entries.filter(({ value }) => value === first?.value)).toEqual([]);
  await store.close();
});
