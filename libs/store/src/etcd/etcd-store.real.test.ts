import { eventually, startEtcd, startTcpProxy, type Etcd } from '@bulwark/testing';
import { Etcd3 } from 'etcd3';
import { afterAll, beforeAll } from 'vitest';
import { describeStore } from '../store.conformance.js';
import { openEtcdStore } from './etcd-store.js';

let etcd: Etcd;
beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.stop());

let count = 0;
describeStore('etcd', async () => {
  const proxy = await startTcpProxy({ target: etcd.endpoint });
  count += 1;
  const namespacePrefix = `/test-${count}`;
  const store = await openEtcdStore({ endpoints: [`http://${proxy.address}`], namespacePrefix });
  const observer = await openEtcdStore({ endpoints: [etcd.endpoint], namespacePrefix });
  return {
    store,
    observer,
    compact: async () => {
      const client = new Etcd3({ hosts: etcd.endpoint });
      await client.kv.compact({ revision: await observer.revision(), physical: true });
      client.close();
    },
    lapse: async (ttlMs) => {
      proxy.pause();
      const started = performance.now();
      await eventually(() => performance.now() - started > ttlMs, { withinMs: ttlMs + 1000 });
      proxy.resume();
    },
    dispose: async () => {
      await store.close();
      await observer.close();
      await proxy.close();
    },
  };
});
