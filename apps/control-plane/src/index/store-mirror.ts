import { StoreError, type ChangeBatch, type Entry, type Listing, type Store } from '@bulwark/store';
import type { Logger } from '@bulwark/telemetry';

/** One change of the mirrored prefix. `entry` absent = deleted. */
export interface MirrorChange {
  readonly key: string;
  readonly entry: Entry | undefined;
  readonly previous: Entry | undefined;
  /** Store revision of the change; for a change found by comparing after a gap, that of the listing at the latest. */
  readonly revision: number;
}

export interface MirrorListener {
  /** After a whole batch is in; changes in order. */
  changed(changes: readonly MirrorChange[]): void;
  /** What was before this revision can not be told step by step: at the first list, and whenever history is gone. */
  gap?(revision: number): void;
  /** The store went back to an older state. */
  wentBack?(from: number, to: number): void;
}

export interface MirrorOptions {
  readonly store: Store;
  /** Ends in "/". */
  readonly prefix: string;
  readonly logger: Logger;
  /** How often the mirror is compared with the store; default once a minute. */
  readonly compareEveryMs?: number;
}

/**
 * `reached`: everything up to the revision is in. `behind`: the store has it, and the watch did not bring it in time.
 * `absent`: the store itself is older.
 */
export type Confirmed = 'reached' | 'behind' | 'absent';

const RETRY_MS = 500;
const COMPARE_EVERY_MS = 60_000;
/** A change that was committed is told by the watch within this, if it is told at all. */
const TOLD_WITHIN_MS = 2_000;

/**
 * A prefix of the store in memory: a list, then a watch from its revision on. When the watch's history is gone it
 * lists again and works out the difference, deletions included. Never throws; it tries again until it is stopped.
 */
export class StoreMirror {
  private readonly map = new Map<string, Entry>();
  private readonly listeners: MirrorListener[] = [];
  private readonly waiters = new Set<{ revision: number; resolve: (reached: boolean) => void }>();
  private readonly stopping = new AbortController();
  private running: Promise<void> | undefined;
  private comparing: NodeJS.Timeout | undefined;
  private listing: Promise<Listing> | undefined;
  private isLoaded = false;
  private at = 0;

  constructor(private readonly options: MirrorOptions) {}

  get entries(): ReadonlyMap<string, Entry> {
    return this.map;
  }

  get loaded(): boolean {
    return this.isLoaded;
  }

  /** Every change up to here is in. 0 = not loaded. */
  get revision(): number {
    return this.at;
  }

  listen(listener: MirrorListener): void {
    this.listeners.push(listener);
  }

  start(): void {
    this.running ??= this.run();
    const everyMs = this.options.compareEveryMs ?? COMPARE_EVERY_MS;
    this.comparing ??= setInterval(() => {
      // The store is away: the watch says so, and this is tried again.
      this.compare().catch(() => undefined);
    }, everyMs);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    clearInterval(this.comparing);
    for (const waiter of this.waiters) waiter.resolve(false);
    await this.running;
  }

  /** Whether the mirror gets as far as `revision` within `withinMs`. */
  async reach(revision: number, withinMs: number): Promise<boolean> {
    if (this.at >= revision) return true;
    return new Promise((resolve) => {
      const waiter = {
        revision,
        resolve: (reached: boolean) => {
          clearTimeout(timer);
          this.waiters.delete(waiter);
          resolve(reached);
        },
      };
      const timer = setTimeout(() => waiter.resolve(false), withinMs);
      this.waiters.add(waiter);
    });
  }

  /**
   * Whether everything up to `revision` is in, asking the store if need be: other replicas may know of revisions that
   * changed nothing under this prefix. However many ask at once, the store is listed once for all of them.
   */
  async confirm(revision: number, withinMs: number): Promise<Confirmed> {
    const until = performance.now() + withinMs;
    if (await this.reach(revision, withinMs / 4)) return 'reached';
    const listing = await this.listedNow(revision);
    if (listing.revision < revision) return 'absent';
    const newest = listing.entries.reduce((most, { modRevision }) => Math.max(most, modRevision), 0);
    await this.reach(newest, Math.max(0, until - performance.now()));
    if (this.equals(listing)) this.advance(listing.revision);
    return this.at >= revision ? 'reached' : 'behind';
  }

  /** A list that may have been under way already, unless it is too old; then one that began after this call. */
  private async listedNow(revision: number): Promise<Listing> {
    const shared = await this.sharedList();
    return shared.revision >= revision ? shared : this.sharedList();
  }

  private sharedList(): Promise<Listing> {
    this.listing ??= this.options.store.list(this.options.prefix).finally(() => (this.listing = undefined));
    return this.listing;
  }

  /** Repairs what a watch lost without a word: nothing should, and then nobody would know. */
  private async compare(): Promise<void> {
    const { store, prefix, logger } = this.options;
    if (!this.isLoaded || this.stopping.signal.aborted) return;
    const at = this.at;
    const listing = await store.list(prefix);
    if (this.equals(listing)) return;
    if (await this.reach(at + 1, TOLD_WITHIN_MS)) return;
    const lost = this.difference(listing);
    if (this.at !== at || lost.length === 0 || this.stopping.signal.aborted) return;
    logger.error({ prefix, changes: lost.length }, 'the watch lost changes; they were found by comparing');
    this.at = Math.max(this.at, listing.revision);
    this.publish(lost);
  }

  private equals(listing: Listing): boolean {
    if (listing.entries.length !== this.map.size) return false;
    return listing.entries.every((entry) => this.map.get(entry.key)?.modRevision === entry.modRevision);
  }

  private async run(): Promise<void> {
    let must: 'list' | 'watch' = 'list';
    while (!this.stopping.signal.aborted) {
      try {
        if (must === 'list') await this.list();
        must = 'watch';
        await this.watch();
        must = 'list';
      } catch (error) {
        if (error instanceof StoreError && error.code === 'closed') return;
        if (error instanceof StoreError && error.code === 'compacted') must = 'list';
        this.options.logger.warn(
          { prefix: this.options.prefix, err: error, next: must },
          must === 'list' ? 'watch lost its place; listing again' : 'watch broke off; resuming',
        );
        await this.pause();
      }
    }
  }

  private async list(): Promise<void> {
    const { prefix, logger, store } = this.options;
    const listing = await store.list(prefix);
    const before = this.at;
    const first = !this.isLoaded;
    const wentBack = listing.revision < before;
    if (!first) {
      logger.warn(
        { prefix, from: before, to: listing.revision },
        'history is gone; compared with a new list',
      );
    }
    this.tell((listener) => listener.gap?.(listing.revision));
    this.at = listing.revision;
    this.isLoaded = true;
    if (wentBack) this.tell((listener) => listener.wentBack?.(before, listing.revision));
    this.publish(this.difference(listing));
  }

  private difference(listing: Listing): MirrorChange[] {
    const changes: MirrorChange[] = [];
    const listed = new Set<string>();
    for (const entry of listing.entries) {
      listed.add(entry.key);
      const previous = this.map.get(entry.key);
      if (previous?.modRevision === entry.modRevision && previous.value === entry.value) continue;
      changes.push({ key: entry.key, entry, previous, revision: entry.modRevision });
    }
    for (const [key, previous] of this.map) {
      if (!listed.has(key)) changes.push({ key, entry: undefined, previous, revision: listing.revision });
    }
    return changes.sort((a, b) => a.revision - b.revision);
  }

  private async watch(): Promise<void> {
    const { store, prefix } = this.options;
    const batches = store.watch(prefix, { afterRevision: this.at, signal: this.stopping.signal });
    for await (const batch of batches) this.take(batch);
  }

  private take(batch: ChangeBatch): void {
    if (batch.revision <= this.at) return;
    const changes = batch.changes.map((change): MirrorChange => {
      const key = change.kind === 'put' ? change.entry.key : change.key;
      return {
        key,
        entry: change.kind === 'put' ? change.entry : undefined,
        previous: this.map.get(key),
        revision: batch.revision,
      };
    });
    this.at = batch.revision;
    this.publish(changes);
  }

  private publish(changes: readonly MirrorChange[]): void {
    for (const { key, entry } of changes) {
      if (entry === undefined) this.map.delete(key);
      else this.map.set(key, entry);
    }
    this.tell((listener) => listener.changed(changes));
    this.advance(this.at);
  }

  /** A defect of one listener must not keep the change from the others: it is not told again. */
  private tell(say: (listener: MirrorListener) => void): void {
    const { prefix, logger } = this.options;
    for (const listener of this.listeners) {
      try {
        say(listener);
      } catch (error) {
        logger.error(
          { prefix, err: error },
          'a change could not be taken in; this replica may show old state',
        );
      }
    }
  }

  private advance(revision: number): void {
    this.at = Math.max(this.at, revision);
    for (const waiter of this.waiters) if (waiter.revision <= this.at) waiter.resolve(true);
  }

  private async pause(): Promise<void> {
    const { signal } = this.stopping;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, RETRY_MS);
      signal.addEventListener('abort', done);
    });
  }
}
