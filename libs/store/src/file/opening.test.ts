import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { temporaryDirectory } from '@bulwark/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StoreError } from '../store-error.js';
import type { Store } from '../store.js';
import { openFileStore } from './file-store.js';

let scratch: ReturnType<typeof temporaryDirectory>;
let directory: string;
const open: Store[] = [];

beforeEach(() => {
  scratch = temporaryDirectory('opening');
  directory = join(scratch.path, 'some', 'new', 'place');
});
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  for (const each of ['', 'some', 'some/new', 'some/new/place']) {
    const path = join(scratch.path, each);
    if (existsSync(path) && statSync(path).isDirectory()) chmodSync(path, 0o755);
  }
  scratch.remove();
});

async function opened(): Promise<Store> {
  const store = await openFileStore({ directory });
  open.push(store);
  return store;
}

async function refusal(): Promise<StoreError> {
  const outcome = await opened().catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(StoreError);
  return outcome as StoreError;
}

async function filled(): Promise<void> {
  const store = await openFileStore({ directory });
  await store.commit({ conditions: [], writes: [{ kind: 'put', key: '/t/a', value: 'precious' }] });
  await store.close();
}

/** Names and contents of all files. */
function fingerprint(): string[] {
  return readdirSync(directory).map((name) => {
    const content = readFileSync(join(directory, name));
    return `${name} ${createHash('sha256').update(content).digest('hex')}`;
  });
}

function tamper(change: (content: Buffer) => Buffer): string[] {
  const path = join(directory, 'bulwark.db');
  writeFileSync(path, change(readFileSync(path)));
  return fingerprint();
}

describe('opening the embedded store', () => {
  test('makes the directory, and finds everything again the next time', async () => {
    await filled();
    const store = await opened();
    expect(await store.get('/t/a')).toMatchObject({ value: 'precious', modRevision: 2 });
    expect(await store.revision()).toBe(2);
  });

  test('a new store is empty, at revision 1', async () => {
    const store = await opened();
    expect(await store.list('/')).toEqual({ entries: [], revision: 1 });
  });

  test('refuses a directory that another server uses, before and after its first write', async () => {
    const store = await opened();
    for (let turn = 0; turn < 2; turn += 1) {
      const error = await refusal();
      expect(error.code).toBe('in-use');
      expect(error.message).toContain(directory);
      expect(error.message).toMatch(/Stop the other server, or use another directory: --store file:OTHER/);
      await store.commit({ conditions: [], writes: [{ kind: 'put', key: '/t/a', value: '' }] });
    }
    await store.close();
    await opened();
  });

  test('refuses a directory it cannot write to', async () => {
    await filled();
    const path = join(directory, 'bulwark.db');
    const before = fingerprint();
    chmodSync(scratch.path, 0o755);
    for (const each of ['some', 'some/new', 'some/new/place']) chmodSync(join(scratch.path, each), 0o555);
    chmodSync(path, 0o444);
    const error = await asNobody(refusal);
    expect(error.code).toBe('read-only');
    expect(error.message).toContain(directory);
    expect(error.message).toMatch(/Make it writable for this user, or name another one/);
    expect(fingerprint()).toEqual(before);
  });

  test('refuses to make a directory where it may not', async () => {
    chmodSync(scratch.path, 0o555);
    const error = await asNobody(refusal);
    expect(error.code).toBe('read-only');
    expect(readdirSync(scratch.path)).toEqual([]);
  });

  test('refuses a file system that takes no directories, instead of trying for ever', async () => {
    // Elsewhere there is no such file system, and the path cannot be made either.
    directory = '/proc/bulwark/store';
    await expect(openFileStore({ directory })).rejects.toThrow(StoreError);
  });

  test('refuses a file that a newer version wrote, and leaves it alone', async () => {
    await filled();
    const before = tamper((content) => {
      content.writeUInt32BE(2, 60); // user_version
      return content;
    });
    const error = await refusal();
    expect(error.code).toBe('newer-version');
    expect(error.message).toMatch(/format 2; this one knows 1.*Start that version/);
    expect(error.message).toContain(directory);
    expect(fingerprint()).toEqual(before);
  });

  test.each([
    ['is no database', () => Buffer.from('hello\n'.repeat(100))],
    ['is cut off in its header', (content: Buffer) => content.subarray(0, 60)],
    ['is cut off in its tables', (content: Buffer) => content.subarray(0, content.length - 4096)],
    ['has a page of garbage', (content: Buffer) => Buffer.from(content).fill(0x5a, 4096, 8192)],
  ])('refuses a file that %s, and leaves it alone', async (_, damage) => {
    await filled();
    const before = tamper(damage);
    const error = await refusal();
    expect(error.code).toBe('corrupt');
    expect(error.message).toContain(directory);
    expect(error.message).toMatch(/Nothing was changed.*backup.*move it away to start with an empty store/);
    expect(fingerprint()).toEqual(before);
  });

  test("refuses another program's database, and leaves it alone", async () => {
    mkdirSync(directory, { recursive: true });
    const other = new DatabaseSync(join(directory, 'bulwark.db'));
    other.exec('CREATE TABLE theirs (a)');
    other.close();
    const before = fingerprint();
    expect(await refusal()).toMatchObject({ code: 'corrupt' });
    expect(fingerprint()).toEqual(before);
  });

  test('refuses a path that is a file', async () => {
    writeFileSync(join(scratch.path, 'some'), '');
    const error = await refusal();
    expect(error.code).toBe('invalid');
    expect(error.message).toMatch(/is not a directory/);
  });

  test('begins anew where a former start died before it wrote anything', async () => {
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'bulwark.db'), '');
    const store = await opened();
    expect(await store.revision()).toBe(1);
  });
});

/** Permissions do not bind root, who becomes another user meanwhile. */
async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    return await work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}
