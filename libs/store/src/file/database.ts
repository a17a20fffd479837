import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../store-error.js';
import { damaged, openingError } from './file-errors.js';

const schemaVersion = 1;
/** "BULW": tells our file from any other SQLite database. */
const applicationId = 0x42554c57;

const schema = `
  CREATE TABLE entries (
    key TEXT NOT NULL UNIQUE, value TEXT NOT NULL, create_revision INTEGER NOT NULL, mod_revision INTEGER NOT NULL, lease TEXT
  ) STRICT;
  CREATE INDEX entries_by_lease ON entries (lease, key) WHERE lease IS NOT NULL;
  CREATE TABLE history (
    revision INTEGER NOT NULL, sequence INTEGER NOT NULL, key TEXT NOT NULL, bytes INTEGER NOT NULL,
    value TEXT, create_revision INTEGER, previous_value TEXT, previous_create_revision INTEGER, previous_mod_revision INTEGER,
    PRIMARY KEY (revision, sequence)
  ) STRICT;
  CREATE TABLE position (id INTEGER PRIMARY KEY CHECK (id = 0), revision INTEGER NOT NULL, compacted INTEGER NOT NULL) STRICT;
  INSERT INTO position VALUES (0, 1, 0);
`;

/**
 * Opens the one file of `directory`, made when absent, and holds it exclusively until closed. Throws a StoreError: "in-use",
 * "read-only", "newer-version", "corrupt" (nothing is changed then), "invalid" (not a directory), "unavailable".
 */
export function openDatabase(directory: string): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    makeDurably(resolve(directory));
    const path = join(directory, 'bulwark.db');
    const isNew = checkHeader(path, directory);
    database = new DatabaseSync(path, { timeout: 0, enableForeignKeyConstraints: false });
    lockForever(database);
    if (isNew) create(database, directory);
    else check(database, directory);
    return database;
  } catch (error) {
    if (database?.isOpen) database.close();
    throw openingError(error, directory);
  }
}

/** A directory exists after a power cut only when its parent was synced. */
function makeDurably(directory: string): void {
  if (existsSync(directory)) {
    mkdirSync(directory, { recursive: true }); // fails when it is a file
    return;
  }
  const parent = dirname(directory);
  makeDurably(parent);
  makeDirectory(directory);
  const handle = openSync(parent, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Not recursively: where a file system takes no directories (/proc) Node's recursive way tries for ever. */
function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    const raced = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    if (!raced) throw error;
  }
}

/**
 * Looks at the first 100 bytes (https://sqlite.org/fileformat.html#the_database_header) before SQLite may touch the
 * file: what a newer version or another program wrote must stay as it is. Answers whether there is no store yet.
 */
function checkHeader(path: string, directory: string): boolean {
  const header = Buffer.alloc(100);
  let length: number;
  try {
    // For writing, too: SQLite would quietly open a file read-only that it may not write.
    const handle = openSync(path, 'r+');
    try {
      length = readSync(handle, header, 0, 100, 0);
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    throw error;
  }
  // The process died between making the file and its first commit.
  if (length === 0) return true;
  if (length < 100 || header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    throw damaged(directory, `bulwark.db does not begin as a store does`);
  }
  checkVersion(header.readUInt32BE(60), directory);
  return false;
}

function checkVersion(version: number, directory: string): void {
  if (version <= schemaVersion) return;
  throw new StoreError(
    'newer-version',
    `The store in ${directory} was written by a newer version of Bulwark (format ${version}; this one knows ${schemaVersion}). ` +
      `Nothing was changed. Start that version, or name another directory.`,
  );
}

/**
 * In exclusive mode the lock is held from the first transaction until the file is closed; the system frees it when
 * the process dies. A write transaction also finds out whether the file can be written.
 */
function lockForever(database: DatabaseSync): void {
  database.exec('PRAGMA locking_mode = EXCLUSIVE');
  database.exec('BEGIN IMMEDIATE; ROLLBACK');
}

function create(database: DatabaseSync, directory: string): void {
  tune(database, directory);
  if (tables(database) > 0) return check(database, directory);
  database.exec(`BEGIN IMMEDIATE; ${schema}
    PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion}; COMMIT`);
  // From now on the header itself says the version, see checkHeader.
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
}

function check(database: DatabaseSync, directory: string): void {
  if (number(database, 'application_id') !== applicationId) {
    if (tables(database) === 0) return create(database, directory);
    throw damaged(directory, 'bulwark.db belongs to another program');
  }
  checkVersion(number(database, 'user_version'), directory);
  const { quick_check: found } = database.prepare('PRAGMA quick_check(1)').get() ?? {};
  if (found !== 'ok') throw damaged(directory, String(found));
  tune(database, directory);
}

/** FULL: every commit syncs the log before it is acknowledged. `fullfsync` makes that true on macOS, too. */
function tune(database: DatabaseSync, directory: string): void {
  const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() ?? {};
  if (mode !== 'wal') {
    throw new StoreError('unavailable', `The file system of ${directory} cannot hold a write-ahead log.`);
  }
  database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1');
}

function tables(database: DatabaseSync): number {
  return Number(database.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n']);
}

function number(database: DatabaseSync, pragma: string): number {
  return Number(database.prepare(`PRAGMA ${pragma}`).get()?.[pragma]);
}
