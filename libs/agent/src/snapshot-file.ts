import { createHash, randomBytes } from 'node:crypto';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { SnapshotVersion } from '@bulwark/protocol';
import { makeDirectory } from './make-directory.js';

/** A resource as it is kept on disk. */
export interface StoredResource {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly createdAtMs: number;
  readonly object: string;
}

export interface StoredSnapshot {
  /** Whose snapshot it is: another service's must not be enforced. */
  readonly namespace: string;
  readonly service: string;
  readonly version: SnapshotVersion;
  /** Wall time of saving, Unix milliseconds: says how stale it is after a restart. */
  readonly savedAtUnixMs: number;
  readonly resources: readonly StoredResource[];
}

export type ReadSnapshot =
  | { readonly kind: 'found'; readonly snapshot: StoredSnapshot }
  | { readonly kind: 'absent' }
  /** Truncated, altered, of another format or of another service: refused whole. */
  | { readonly kind: 'unusable'; readonly reason: string };

const FORMAT = 1;
const MAX_BYTES = 128 * 1024 * 1024;

/**
 * The last snapshot on disk: a header line with format, length and SHA-256, then the JSON. It is replaced as a
 * whole (temporary file, fsync, rename, fsync of the directory), so a crash leaves the former or the new one.
 */
export class SnapshotFile {
  readonly path: string;
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    this.path = join(directory, 'snapshot.json');
  }

  async read(owner: { namespace: string; service: string }): Promise<ReadSnapshot> {
    let text: Buffer;
    try {
      const { size } = await stat(this.path);
      if (size > MAX_BYTES) return { kind: 'unusable', reason: `larger than ${MAX_BYTES} bytes` };
      text = await readFile(this.path);
    } catch (error) {
      return isNotFound(error) ? { kind: 'absent' } : { kind: 'unusable', reason: messageOf(error) };
    }
    try {
      return { kind: 'found', snapshot: parse(text, owner) };
    } catch (error) {
      return { kind: 'unusable', reason: messageOf(error) };
    }
  }

  /** Resolves once the snapshot survives a crash. Rejects with the file system's error; the former file then stays. */
  async write(snapshot: StoredSnapshot): Promise<void> {
    const body = Buffer.from(JSON.stringify(snapshot));
    const header = `${JSON.stringify({ format: FORMAT, bytes: body.length, sha256: digest(body) })}\n`;
    await makeDirectory(this.#directory, 0o700);
    const temporary = `${this.path}.${process.pid}.${randomBytes(4).toString('hex')}`;
    try {
      const file = await open(temporary, 'wx', 0o600);
      try {
        await file.writeFile(Buffer.concat([Buffer.from(header), body]));
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, this.path);
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      throw error;
    }
    await this.#syncDirectory();
  }

  async #syncDirectory(): Promise<void> {
    const directory = await open(this.#directory, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  }
}

function parse(text: Buffer, owner: { namespace: string; service: string }): StoredSnapshot {
  const end = text.indexOf(0x0a);
  if (end < 0) throw new Error('truncated: no header line');
  const header = asRecord(JSON.parse(text.subarray(0, end).toString('utf8')), 'header');
  if (header['format'] !== FORMAT)
    throw new Error(`format ${String(header['format'])}, this version reads ${FORMAT}`);
  const body = text.subarray(end + 1);
  if (header['bytes'] !== body.length) {
    throw new Error(`truncated or altered: ${body.length} bytes, the header says ${String(header['bytes'])}`);
  }
  if (header['sha256'] !== digest(body)) throw new Error('altered: the checksum does not match');
  const snapshot = asRecord(JSON.parse(body.toString('utf8')), 'snapshot') as unknown as StoredSnapshot;
  if (snapshot.namespace !== owner.namespace || snapshot.service !== owner.service) {
    throw new Error(
      `belongs to ${snapshot.namespace}/${snapshot.service}, this agent is ${owner.namespace}/${owner.service}`,
    );
  }
  return snapshot;
}

function asRecord(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new Error(`${what} is not an object`);
  return value as Record<string, unknown>;
}

function digest(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex');
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
