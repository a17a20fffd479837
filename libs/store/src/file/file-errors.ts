import { StoreError } from '../store-error.js';

/** SQLite's primary result codes that mean something to us: https://sqlite.org/rescode.html */
const sqlite = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const;

/** What opening `directory` failed with, as a StoreError whose message says what to do. */
export function openingError(error: unknown, directory: string): StoreError {
  if (error instanceof StoreError) return error;
  const options = { cause: error };
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return readOnly(directory, options);
  if (code === 'ENOTDIR' || code === 'EEXIST') {
    return new StoreError(
      'invalid',
      `${directory} is not a directory: name another one for the store.`,
      options,
    );
  }
  switch (resultCode(error)) {
    case sqlite.busy:
    case sqlite.locked:
      return new StoreError(
        'in-use',
        `The store directory ${directory} is in use by another server. Stop the other server, or use another directory: --store file:OTHER.`,
        options,
      );
    case sqlite.readOnly:
    case sqlite.cannotOpen:
      return readOnly(directory, options);
    case sqlite.corrupt:
    case sqlite.notADatabase:
      return damaged(directory, messageOf(error), options);
    default:
      return new StoreError(
        'unavailable',
        `Could not open the store in ${directory}: ${messageOf(error)}.`,
        options,
      );
  }
}

export function damaged(directory: string, what: string, options?: ErrorOptions): StoreError {
  return new StoreError(
    'corrupt',
    `The store in ${directory} is damaged (${what}). Nothing was changed. ` +
      `Put a backup of the directory in its place, or move it away to start with an empty store.`,
    options,
  );
}

function readOnly(directory: string, options: ErrorOptions): StoreError {
  return new StoreError(
    'read-only',
    `The store directory ${directory} cannot be written to. Make it writable for this user, or name another one.`,
    options,
  );
}

/** What a running store failed with, before anything was made durable. */
export function workError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const why = resultCode(error) === sqlite.full ? 'the disk is full' : messageOf(error);
  return new StoreError('unavailable', `The store could not do it: ${why}. Nothing was changed.`, {
    cause: error,
  });
}

/**
 * What a sync failed with. A full disk is noticed before the sync; after any other failure the data may have reached
 * the disk or not.
 */
export function syncError(error: unknown): StoreError {
  if (resultCode(error) === sqlite.full) return workError(error);
  const message = `Writing to the disk failed: ${messageOf(error)}. The commit may or may not have happened.`;
  return new StoreError('unknown-outcome', message, { cause: error });
}

function resultCode(error: unknown): number | undefined {
  const { errcode } = error as { errcode?: unknown };
  return typeof errcode === 'number' ? errcode & 0xff : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
