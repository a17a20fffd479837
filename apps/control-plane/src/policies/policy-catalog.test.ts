import { createLogger } from '@bulwark/telemetry';
import { eventually } from '@bulwark/testing';
import { expect, it } from 'vitest';
import { StoreMirror } from '../index/store-mirror.js';
import { policy } from '../in-process/api-client.js';
import { MemoryStore } from '../in-process/memory-store.js';
import { PolicyCatalog, POLICY_PREFIX } from './policy-catalog.js';

it('leaves out what somebody wrote into the store by hand and cannot be read as the policy of its key', async () => {
  const logger = createLogger({ name: 'test', level: 'silent' });
  const store = new MemoryStore();
  const put = (place: string, value: unknown) =>
    store.commit({
      conditions: [],
      writes: [{ kind: 'put', key: `${POLICY_PREFIX}${place}`, value: JSON.stringify(value) }],
    });
  const mirror = new StoreMirror({ store, prefix: POLICY_PREFIX, logger });
  const catalog = new PolicyCatalog(mirror, logger);
  mirror.start();
  try {
    await put('shop/other', policy('pay', {}, { namespace: 'shop' }));
    await put('shop/none', null);
    await put('shop/empty', {});
    await put('team/pay', policy('pay', {}, { namespace: 'shop' }));
    await put('shop/pay', policy('pay', {}, { namespace: 'shop' }));
    await eventually(() => catalog.of('shop').has('pay'));
    expect([...catalog.all()].map(({ resource }) => resource.name)).toEqual([
      { kind: 'resiliencepolicies', namespace: 'shop', name: 'pay' },
    ]);
  } finally {
    await mirror.stop();
  }
});
