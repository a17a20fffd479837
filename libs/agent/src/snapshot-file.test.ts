import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from './logger.js';
import { SnapshotKeeper } from './snapshot-keeper.js';
import { SnapshotFile, type StoredSnapshot } from './snapshot-file.js';

const owner = { namespace: 'shop', service: 'storefront' };
const snapshot: StoredSnapshot = {
  ...owner,
  version: { era: 1, revision: 7 },
  savedAtUnixMs: 1,
  resources: [
    {
      kind: 'resiliencepolicies',
      namespace: 'shop',
      name: 'a',
      uid: 'u',
      generation: 3,
      createdAtMs: 2,
      object: '{"ä":1}',
    },
  ],
};
let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'bulwark-snapshot-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

describe('the snapshot on disk', () => {
  it('comes back as it was written, also into a directory that did not exist, and leaves no other file', async () => {
    const file = new SnapshotFile(join(directory, 'deep', 'state'));
    expect(await file.read(owner)).toEqual({ kind: 'absent' });
    await file.write({ ...snapshot, resources: [] });
    await file.write(snapshot);
    expect(await file.read(owner)).toEqual({ kind: 'found', snapshot });
    expect(await readdir(join(directory, 'deep', 'state'))).toEqual(['snapshot.json']);
  });

  it('is refused whole at whatever byte it was cut', async () => {
    const file = new SnapshotFile(directory);
    await file.write(snapshot);
    const whole = await readFile(file.path);
    for (let bytes = 0; bytes < whole.length; bytes += 1) {
      await writeFile(file.path, whole.subarray(0, bytes));
      expect((await file.read(owner)).kind, `cut at ${bytes}`).toBe('unusable');
    }
  });

  it('is refused whole when one byte was altered', async () => {
    const file = new SnapshotFile(directory);
    await file.write(snapshot);
    const whole = await readFile(file.path);
    for (let at = 0; at < whole.length; at += 7) {
      const altered = Buffer.from(whole);
      altered[at] = (altered[at] ?? 0) ^ 1;
      await writeFile(file.path, altered);
      expect((await file.read(owner)).kind, `altered at ${at}`).toBe('unusable');
    }
  });

  it('of another service is refused with both names', async () => {
    const file = new SnapshotFile(directory);
    await file.write(snapshot);
    expect(await file.read({ namespace: 'shop', service: 'cart' })).toEqual({
      kind: 'unusable',
      reason: 'belongs to shop/storefront, this agent is shop/cart',
    });
  });

  it('is refused unread when it is larger than any snapshot', async () => {
    const file = new SnapshotFile(directory);
    await writeFile(file.path, '');
    await truncate(file.path, 128 * 1024 * 1024 + 1);
    expect(await file.read(owner)).toEqual({
      kind: 'unusable',
      reason: expect.stringContaining('larger than') as string,
    });
  });

  it('stays the former one when the new one cannot be written', async () => {
    const file = new SnapshotFile(join(directory, 'taken'));
    await writeFile(join(directory, 'taken'), 'a file where the directory should be');
    await expect(file.write(snapshot)).rejects.toThrow(/EEXIST|ENOTDIR/);
  });

  // Node's own recursive mkdir never returns there, and holds a core.
  it.runIf(existsSync('/proc/self'))(
    'is refused by a file system that takes no directories, which is told',
    async () => {
      const errors: object[] = [];
      const keeper = new SnapshotKeeper({
        ...owner,
        directory: '/proc/bulwark/deep/state',
        logger: { ...silentLogger, error: (fields) => errors.push(fields) },
      });
      expect(await keeper.load()).toBeUndefined();
      await keeper.save({ version: { era: 1, revision: 1 }, resources: new Map() });
      expect(keeper.problem).toMatch(/ENOENT.* '\/proc\/bulwark'/);
      expect(errors).toEqual([{ file: '/proc/bulwark/deep/state/snapshot.json', reason: keeper.problem }]);
    },
  );

  it('is written by many at once into a directory that did not exist', async () => {
    const deep = join(directory, 'a', 'b', 'c');
    await Promise.all(Array.from({ length: 8 }, () => new SnapshotFile(deep).write(snapshot)));
    expect(await readdir(deep)).toEqual(['snapshot.json']);
  });
});
