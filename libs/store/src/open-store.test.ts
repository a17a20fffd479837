import { join } from 'node:path';
import { temporaryDirectory } from '@bulwark/testing';
import { expect, test } from 'vitest';
import { openStore } from './open-store.js';
import { StoreError } from './store-error.js';

async function failure(url: string): Promise<StoreError> {
  const error = await openStore(url).then(
    () => new Error('it opened'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

test('file:DIRECTORY opens the embedded store there', async () => {
  using scratch = temporaryDirectory('open');
  const store = await openStore(`file:${join(scratch.path, 'a b', 'ü')}`);
  expect(store.kind).toBe('file');
  expect(await store.revision()).toBe(1);
  await store.close();
});

test.each(['', 'file:', 'etcd:', 'redis:x', '/var/lib/bulwark', 'http://127.0.0.1:2379', 'FILE:x'])(
  'refuses %j and says what to write',
  async (url) => {
    const error = await failure(url);
    expect(error.code).toBe('invalid');
    expect(error.message).toContain(JSON.stringify(url));
    expect(error.message).toContain('file:DIRECTORY');
    expect(error.message).toContain('etcd:http://HOST:PORT');
  },
);

test.each([
  '127.0.0.1:2379',
  'http://127.0.0.1',
  'http://h:99999',
  'http://h:1/path',
  'ftp://h:1',
  'http://a:1,',
  'http://a:1,b:2',
])('refuses the etcd endpoints %j before it connects', async (endpoints) => {
  const error = await failure(`etcd:${endpoints}`);
  expect(error.code).toBe('invalid');
  expect(error.message).toMatch(/write http:\/\/HOST:PORT/);
});

test('refuses endpoints that mix http and https', async () => {
  expect(await failure('etcd:http://a:1,https://b:1')).toMatchObject({ code: 'invalid' });
});

test('an etcd that is not there is told within the time, with its address and what to check', async () => {
  const { openEtcdStore } = await import('./etcd/etcd-store.js');
  const started = performance.now();
  // Port 1 is nobody's.
  const error = await openEtcdStore({ endpoints: ['http://127.0.0.1:1'], connectTimeoutMs: 600 }).catch(
    (reason: unknown) => reason as StoreError,
  );
  expect(performance.now() - started).toBeLessThan(1500);
  expect(error).toMatchObject({ code: 'unavailable' });
  expect((error as StoreError).message).toMatch(
    /http:\/\/127\.0\.0\.1:1 did not answer within 600 ms.*ECONNREFUSED.*Check that etcd runs there.*etcdctl/,
  );
});
