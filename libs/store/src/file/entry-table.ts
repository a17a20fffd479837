import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { prefixEnd } from '../bounds.js';
import type { Entry } from '../store.js';

interface Row {
  readonly key: string;
  readonly value: string;
  readonly create_revision: number;
  readonly mod_revision: number;
}

/** The current entries. Lease names are the store's own and never leave it. */
export class EntryTable {
  private readonly select: StatementSync;
  private readonly selectRange: StatementSync;
  private readonly selectLeased: StatementSync;
  private readonly upsert: StatementSync;
  private readonly remove: StatementSync;

  constructor(database: DatabaseSync) {
    const columns = 'key, value, create_revision, mod_revision';
    this.select = database.prepare(`SELECT ${columns} FROM entries WHERE key = ?`);
    this.selectRange = database.prepare(
      `SELECT ${columns} FROM entries WHERE key >= ? AND key < ? ORDER BY key`,
    );
    this.selectLeased = database.prepare(`SELECT key FROM entries WHERE lease = ? ORDER BY key`);
    this.upsert = database.prepare(
      `INSERT INTO entries (${columns}, lease) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
       SET value = excluded.value, mod_revision = excluded.mod_revision, lease = excluded.lease`,
    );
    this.remove = database.prepare('DELETE FROM entries WHERE key = ?');
  }

  get(key: string): Entry | undefined {
    const row = this.select.get(key) as unknown as Row | undefined;
    return row && entryOf(row);
  }

  list(prefix: string): Entry[] {
    const rows = this.selectRange.all(prefix, prefixEnd(prefix)) as unknown as Row[];
    return rows.map(entryOf);
  }

  /** In key order. */
  keysUnder(lease: string): string[] {
    return (this.selectLeased.all(lease) as unknown as Pick<Row, 'key'>[]).map(({ key }) => key);
  }

  put(entry: Entry, lease: string | undefined): void {
    this.upsert.run(entry.key, entry.value, entry.createRevision, entry.modRevision, lease ?? null);
  }

  delete(key: string): void {
    this.remove.run(key);
  }
}

function entryOf(row: Row): Entry {
  return {
    key: row.key,
    value: row.value,
    createRevision: row.create_revision,
    modRevision: row.mod_revision,
  };
}
