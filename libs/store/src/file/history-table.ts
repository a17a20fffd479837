import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { prefixEnd } from '../bounds.js';
import { StoreError } from '../store-error.js';
import type { Change, ChangeBatch, Entry } from '../store.js';

export interface HistoryLimits {
  /** Revisions kept at least; up to a tenth more are, so that old ones go in bulk. */
  readonly revisions: number;
  /** Bytes of keys and values kept at most; the newest revision always is. */
  readonly bytes: number;
}

export interface HistoryPage {
  readonly batches: readonly ChangeBatch[];
  /** Everything up to and with this revision is in `batches` or does not concern the prefix. */
  readonly readTo: number;
}

interface Row {
  readonly revision: number;
  readonly key: string;
  readonly bytes: number;
  readonly value: string | null;
  readonly create_revision: number | null;
  readonly previous_value: string | null;
  readonly previous_create_revision: number | null;
  readonly previous_mod_revision: number | null;
}

const pageRowsMax = 256;
const pageBytesMax = 4 * 1024 * 1024;

/**
 * The changes of the last revisions, for watches. `revision` and `compacted` are those of the last durable transaction;
 * what a running transaction changes is staged until `settle`.
 */
export class HistoryTable {
  /** The newest durable revision. */
  revision: number;
  /** Changes up to and with this revision are gone. */
  compacted: number;
  /** The kept revisions that changed something, oldest first, with their sizes. */
  private readonly kept: { readonly revision: number; readonly bytes: number }[] = [];
  private keptBytes = 0;
  private readonly insert: StatementSync;
  private readonly selectAfter: StatementSync;
  private readonly selectOne: StatementSync;
  private readonly removeTo: StatementSync;
  private readonly savePosition: StatementSync;

  constructor(
    database: DatabaseSync,
    private readonly limits: HistoryLimits,
  ) {
    const columns =
      'revision, key, bytes, value, create_revision, previous_value, previous_create_revision, previous_mod_revision';
    const inOrder = 'ORDER BY revision, sequence';
    this.insert = database.prepare(
      `INSERT INTO history (sequence, ${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.selectAfter = database.prepare(
      `SELECT ${columns} FROM history WHERE revision > ? AND key >= ? AND key < ? ${inOrder}`,
    );
    this.selectOne = database.prepare(
      `SELECT ${columns} FROM history WHERE revision = ? AND key >= ? AND key < ? ${inOrder}`,
    );
    this.removeTo = database.prepare('DELETE FROM history WHERE revision <= ?');
    this.savePosition = database.prepare('UPDATE position SET revision = ?, compacted = ? WHERE id = 0');
    const position = database.prepare('SELECT revision, compacted FROM position WHERE id = 0').get();
    this.revision = Number(position?.['revision']);
    this.compacted = Number(position?.['compacted']);
    const sizes = database.prepare('SELECT revision, sum(bytes) AS bytes FROM history GROUP BY revision');
    for (const row of sizes.all())
      this.keep({ revision: Number(row['revision']), bytes: Number(row['bytes']) });
  }

  /** Inside a transaction: writes the changes of one revision. Answers their size, for `settle`. */
  add(revision: number, changes: readonly Change[]): number {
    let total = 0;
    changes.forEach((change, sequence) => {
      const put = change.kind === 'put' ? change.entry : undefined;
      const key = change.kind === 'put' ? change.entry.key : change.key;
      const { previous } = change;
      const bytes = size(key) + size(put?.value) + size(previous?.value);
      total += bytes;
      this.insert.run(
        ...[sequence, revision, key, bytes, put?.value ?? null, put?.createRevision ?? null],
        ...[previous?.value ?? null, previous?.createRevision ?? null, previous?.modRevision ?? null],
      );
    });
    return total;
  }

  /**
   * Inside a transaction, last: saves the position and deletes what is beyond the limits. Answers what to do once the
   * transaction is durable; after a rollback nothing has to be done.
   */
  finish(added: readonly { readonly revision: number; readonly bytes: number }[]): () => void {
    const revision = added.at(-1)?.revision ?? this.revision;
    const drop = this.tooMany(added);
    const compacted = drop > 0 ? this.revisionAt(drop - 1, added) : this.compacted;
    if (drop > 0) this.removeTo.run(compacted);
    this.savePosition.run(revision, compacted);
    return () => {
      for (const each of added) this.keep(each);
      for (const each of this.kept.splice(0, drop)) this.keptBytes -= each.bytes;
      this.revision = revision;
      this.compacted = compacted;
    };
  }

  /** Changes under `prefix` after `revision`: a bounded page of them, whole revisions. Throws "compacted". */
  read(prefix: string, afterRevision: number): HistoryPage {
    if (afterRevision < this.compacted || afterRevision > this.revision) throw gone(afterRevision, this);
    const range = [prefix, prefixEnd(prefix)] as const;
    const rows: Row[] = [];
    let bytes = 0;
    for (const each of this.selectAfter.iterate(afterRevision, ...range)) {
      const row = each as unknown as Row;
      const full = rows.length >= pageRowsMax || bytes >= pageBytesMax;
      // A page ends between two revisions only.
      if (full && row.revision !== rows.at(-1)?.revision) {
        return { batches: batchesOf(rows), readTo: rows.at(-1)?.revision ?? afterRevision };
      }
      rows.push(row);
      bytes += row.bytes;
    }
    return { batches: batchesOf(rows), readTo: this.revision };
  }

  private keep(each: { readonly revision: number; readonly bytes: number }): void {
    this.kept.push(each);
    this.keptBytes += each.bytes;
  }

  /** How many of the oldest revisions, of the kept ones and then the added ones, are to go. */
  private tooMany(added: readonly { readonly bytes: number }[]): number {
    const count = this.kept.length + added.length;
    let bytes = added.reduce((sum, each) => sum + each.bytes, this.keptBytes);
    const slack = Math.ceil(this.limits.revisions / 10);
    let drop = count > this.limits.revisions + slack ? count - this.limits.revisions : 0;
    for (let at = 0; at < count - 1; at += 1) {
      if (at >= drop && bytes <= this.limits.bytes) break;
      bytes -= (this.kept[at] ?? added[at - this.kept.length])?.bytes ?? 0;
      drop = Math.max(drop, at + 1);
    }
    return drop;
  }

  private revisionAt(index: number, added: readonly { readonly revision: number }[]): number {
    const each = this.kept[index] ?? added[index - this.kept.length];
    return each?.revision ?? this.revision;
  }
}

function gone(afterRevision: number, { compacted, revision }: HistoryTable): StoreError {
  const message = `Changes after revision ${afterRevision} are not kept (only after ${compacted} up to ${revision}): list again.`;
  return new StoreError('compacted', message);
}

function size(text: string | undefined): number {
  return text === undefined ? 0 : Buffer.byteLength(text);
}

function batchesOf(rows: readonly Row[]): ChangeBatch[] {
  const batches: { revision: number; changes: Change[] }[] = [];
  for (const row of rows) {
    let batch = batches.at(-1);
    if (batch?.revision !== row.revision) {
      batch = { revision: row.revision, changes: [] };
      batches.push(batch);
    }
    batch.changes.push(changeOf(row));
  }
  return batches;
}

function changeOf(row: Row): Change {
  const previous = entryOf(
    row.key,
    row.previous_value,
    row.previous_create_revision,
    row.previous_mod_revision,
  );
  const entry = entryOf(row.key, row.value, row.create_revision, row.revision);
  return entry === undefined ? { kind: 'delete', key: row.key, previous } : { kind: 'put', entry, previous };
}

function entryOf(
  key: string,
  value: string | null,
  createRevision: number | null,
  modRevision: number | null,
): Entry | undefined {
  if (value === null || createRevision === null || modRevision === null) return undefined;
  return { key, value, createRevision, modRevision };
}
