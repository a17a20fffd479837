import { eventually } from '@bulwark/testing';
import { StoreError, type StoreErrorCode } from '../store-error.js';
import type { ChangeBatch, CommitResult, Store, Write } from '../store.js';

/** What an adapter gives the suite for one test. Its quirks are in how it does these things. */
export interface StoreFixture {
  /** Open and empty. */
  readonly store: Store;
  /** Sees the same keys, and stays connected whatever `lapse` does; may be `store` itself. */
  readonly observer: Store;
  /** Makes the history up to now go away. May write keys outside of "/t/". */
  compact(): Promise<void>;
  /** Keeps `store` from renewing its leases until one of `ttlMs` has lapsed, then lets it work again. */
  lapse(ttlMs: number): Promise<void>;
  /** Closes all and deletes the data. */
  dispose(): Promise<void>;
}

export type OpenStoreFixture = () => Promise<StoreFixture>;

/** Gives the fixture of the running test. */
export type GetFixture = () => StoreFixture;

export function put(key: string, value = 'v'): Write {
  return { kind: 'put', key, value };
}

export function remove(key: string): Write {
  return { kind: 'delete', key };
}

/** Commits without conditions and answers the revision. */
export async function write(store: Store, ...writes: readonly Write[]): Promise<number> {
  const result: CommitResult = await store.commit({ conditions: [], writes });
  return result.revision;
}

/** The code of the StoreError that `work` rejects with; anything else is thrown on. */
export async function codeOf(work: () => Promise<unknown>): Promise<StoreErrorCode | 'no error'> {
  try {
    await work();
    return 'no error';
  } catch (error) {
    if (error instanceof StoreError) return error.code;
    throw error;
  }
}

export interface Recording {
  readonly batches: ChangeBatch[];
  /** Resolves when the watch ends silently, with the code when it ends with a StoreError. */
  readonly ended: Promise<StoreErrorCode | 'silently'>;
  stop(): void;
  /** Waits until a batch of this revision or a later one has come. */
  until(revision: number, withinMs?: number): Promise<void>;
}

/** Watches into a list, until stopped. */
export function record(store: Store, prefix: string, afterRevision: number): Recording {
  const controller = new AbortController();
  const batches: ChangeBatch[] = [];
  const collect = async () => {
    try {
      for await (const batch of store.watch(prefix, { afterRevision, signal: controller.signal }))
        batches.push(batch);
      return 'silently' as const;
    } catch (error) {
      if (error instanceof StoreError) return error.code;
      throw error;
    }
  };
  let end: string | undefined;
  const ended = collect();
  ended.then(
    (how) => (end = how),
    (error: unknown) => (end = String(error)),
  );
  return {
    batches,
    ended,
    stop: () => controller.abort(),
    until: async (revision, withinMs = 10_000) => {
      const reached = () => (batches.at(-1)?.revision ?? 0) >= revision;
      const what = `the watch to reach revision ${revision}`;
      await eventually(() => reached() || end !== undefined, { withinMs, everyMs: 5, what });
      if (!reached()) throw new Error(`The watch ended (${end}) before revision ${revision}`);
    },
  };
}

/** A batch in short: "12 +/t/a=v -/t/b". */
export function brief({ revision, changes }: ChangeBatch): string {
  const each = changes.map((change) =>
    change.kind === 'put' ? `+${change.entry.key}=${change.entry.value}` : `-${change.key}`,
  );
  return [revision, ...each].join(' ');
}
