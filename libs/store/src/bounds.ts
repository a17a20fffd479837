import { StoreError } from './store-error.js';
import type { Transaction, Write } from './store.js';

export const keyBytesMax = 1024;
export const valueBytesMax = 1024 * 1024;
/** Of the keys and values of one transaction: below what etcd takes in one request by default (1.5 MiB). */
export const commitBytesMax = 1_310_720;
export const conditionsMax = 100;
export const writesMax = 100;
export const ttlMsMin = 1000;
export const ttlMsMax = 3_600_000;

const loneSurrogate = /\p{Surrogate}/u;

/** Throws `StoreError` code "invalid" unless `key` is within the port's bounds. */
export function checkKey(key: string): void {
  checkPath('key', key);
  if (key.endsWith('/')) throw invalid(`The key ${quoted(key)} must not end in "/"`);
}

/** A prefix is "/" or a key followed by "/". */
export function checkPrefix(prefix: string): void {
  checkPath('prefix', prefix);
  if (!prefix.endsWith('/')) throw invalid(`The prefix ${quoted(prefix)} must end in "/"`);
}

/** The first key, in byte order, after all that begin with `prefix`. */
export function prefixEnd(prefix: string): string {
  return `${prefix.slice(0, -1)}0`; // "0" is the byte after "/"
}

export function checkRevision(name: string, revision: number): void {
  if (Number.isSafeInteger(revision) && revision >= 0) return;
  throw invalid(`${name} must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}, not ${revision}`);
}

export function checkTtl(ttlMs: number): void {
  if (ttlMs >= ttlMsMin && ttlMs <= ttlMsMax) return;
  throw invalid(`A lease's ttlMs must be from ${ttlMsMin} to ${ttlMsMax}, not ${ttlMs}`);
}

/** Checks all that can be known without the store; throws `StoreError` code "invalid". */
export function checkTransaction({ conditions, writes }: Transaction): void {
  if (conditions.length > conditionsMax) {
    throw invalid(`A transaction has at most ${conditionsMax} conditions, not ${conditions.length}`);
  }
  if (writes.length > writesMax) {
    throw invalid(`A transaction has at most ${writesMax} writes, not ${writes.length}`);
  }
  let bytes = 0;
  for (const condition of conditions) {
    checkKey(condition.key);
    if ('modRevision' in condition) checkRevision('modRevision', condition.modRevision);
    else checkRevision('createRevision', condition.createRevision);
    bytes += Buffer.byteLength(condition.key);
  }
  bytes += checkWrites(writes);
  if (bytes > commitBytesMax) {
    throw invalid(`A transaction's keys and values have at most ${commitBytesMax} bytes, not ${bytes}`);
  }
}

function checkWrites(writes: readonly Write[]): number {
  const written = new Set<string>();
  let bytes = 0;
  for (const write of writes) {
    checkKey(write.key);
    if (written.has(write.key))
      throw invalid(`The key ${quoted(write.key)} is written twice in one transaction`);
    written.add(write.key);
    bytes += Buffer.byteLength(write.key) + (write.kind === 'put' ? checkedValueBytes(write) : 0);
  }
  return bytes;
}

function checkedValueBytes({ key, value }: { key: string; value: string }): number {
  const bytes = Buffer.byteLength(value);
  if (bytes > valueBytesMax) {
    throw invalid(`The value of ${quoted(key)} has ${bytes} bytes; at most ${valueBytesMax} are stored`);
  }
  if (loneSurrogate.test(value)) throw invalid(`The value of ${quoted(key)} is no well-formed Unicode text`);
  return bytes;
}

function checkPath(what: string, path: string): void {
  if (!path.startsWith('/')) throw invalid(`The ${what} ${quoted(path)} must begin with "/"`);
  if (path.includes('//')) throw invalid(`The ${what} ${quoted(path)} has an empty segment`);
  const bytes = Buffer.byteLength(path);
  if (bytes > keyBytesMax) {
    throw invalid(`The ${what} ${quoted(path)} has ${bytes} bytes; at most ${keyBytesMax} are allowed`);
  }
  if (loneSurrogate.test(path)) throw invalid(`The ${what} ${quoted(path)} is no well-formed Unicode text`);
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function invalid(message: string): StoreError {
  return new StoreError('invalid', message);
}
