import { FakeHost } from '@bulwark/testing';
import { expect, test } from 'vitest';
import { Guard, type GuardSettings } from './index.js';

const settings: GuardSettings = {
  policy: 'shop/recs',
  generation: 1,
  mode: 'enforce',
  timeout: { totalMs: 1000 },
  fallbacks: [],
  failures: { statuses: new Set([500, 503]), grpc: new Set(), timeouts: true },
};

test('a call that is answered is fresh', async () => {
  const host = new FakeHost();
  const guard = new Guard({ host, settings });
  const result = await guard.call({ operation: 'GET /' }, () => Promise.resolve(200), {
    judge: (status) => ({ httpStatus: status }),
    judgeError: () => ({}),
  });
  expect(result).toEqual({ kind: 'fresh', value: 200, attempts: 1, policy: 'shop/recs@1' });
  guard.close();
});
