import { expect, test } from 'vitest';
import { StoreError } from '../store-error.js';
import { etcdError, isRefusal } from './etcd-errors.js';

// As etcd 3.4 and grpc-js 1.14 wrote them.
test.each([
  [
    'Lease 5 NOT_FOUND: etcdserver: requested lease not found is expired or revoked',
    'lease-lost',
    'lease-lost',
  ],
  ['11 OUT_OF_RANGE: etcdserver: mvcc: required revision has been compacted', 'compacted', 'compacted'],
  ['11 OUT_OF_RANGE: etcdserver: mvcc: required revision is a future revision', 'compacted', 'compacted'],
  ['3 INVALID_ARGUMENT: etcdserver: request is too large', 'invalid', 'invalid'],
  ['8 RESOURCE_EXHAUSTED: etcdserver: mvcc: database space exceeded', 'unavailable', 'unavailable'],
  ['14 UNAVAILABLE: etcdserver: no leader', 'unavailable', 'unavailable'],
  [
    '14 UNAVAILABLE: No connection established. Last error: connect ECONNREFUSED',
    'unavailable',
    'unavailable',
  ],
  ['14 UNAVAILABLE: Name resolution failed for target dns:nowhere:2379', 'unavailable', 'unavailable'],
  ['4 DEADLINE_EXCEEDED: Deadline exceeded after 1.000s,Waiting for LB pick', 'unavailable', 'unavailable'],
  // From here on the request was on its way.
  [
    '4 DEADLINE_EXCEEDED: Deadline exceeded after 0.999s,remote_addr=127.0.0.1:2379',
    'unavailable',
    'unknown-outcome',
  ],
  ['14 UNAVAILABLE: Connection dropped', 'unavailable', 'unknown-outcome'],
  ['14 UNAVAILABLE: read ECONNRESET', 'unavailable', 'unknown-outcome'],
  ['14 UNAVAILABLE: etcdserver: request timed out', 'unavailable', 'unknown-outcome'],
  ['14 UNAVAILABLE: etcdserver: leader changed', 'unavailable', 'unknown-outcome'],
  ['something nobody has seen before', 'unavailable', 'unknown-outcome'],
])('"%s" is %s for a read and %s for a write', (message, read, write) => {
  const cause = new Error(message);
  for (const [kind, code] of [
    ['read', read],
    ['write', write],
  ] as const) {
    const error = etcdError(cause, kind);
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
    expect(error.cause).toBe(cause);
  }
});

test('a StoreError passes unchanged', () => {
  const error = new StoreError('compacted', 'gone');
  expect(etcdError(error, 'write')).toBe(error);
});

test('a refusal for want of rights is told from what passes by itself', () => {
  expect(isRefusal(new Error('7 PERMISSION_DENIED: etcdserver: permission denied'))).toBe(true);
  expect(isRefusal(new Error('14 UNAVAILABLE: etcdserver: no leader'))).toBe(false);
});
