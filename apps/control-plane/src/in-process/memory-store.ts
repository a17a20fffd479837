import {
  StoreError,
  type Change,
  type ChangeBatch,
  type Entry,
  type Lease,
  type Store,
  type Transaction,
} from '@bulwark/store';

interface Watcher {
  readonly prefix: string;
  readonly queue: ChangeBatch[];
  wake: () => void;
  failure: StoreError | undefined;
}

/** The store port in memory, for tests that need to say when it fails. Not durable, one process. */
export class MemoryStore implements Store {
  readonly kind = 'memory';
  /** The next request of this kind fails with this error. */
  readonly failNext = new Map<'get' | 'list' | 'commit' | 'revision' | 'lease', StoreError>();
  private entries = new Map<string, Entry>();
  private readonly watchers = new Set<Watcher>();
  private at = 1;

  get(key: string): Promise<Entry | undefined> {
    return this.answer('get', () => this.entries.get(key));
  }

  list(prefix: string): ReturnType<Store['list']> {
    return this.answer('list', () => ({
      entries: [...this.entries.values()]
        .filter(({ key }) => key.startsWith(prefix))
        .sort((a, b) => (a.key < b.key ? -1 : 1)),
      revision: this.at,
    }));
  }

  commit({ conditions, writes }: Transaction): ReturnType<Store['commit']> {
    return this.answer('commit', () => {
      const current = conditions.map(({ key }) => this.entries.get(key));
      const holds = conditions.every((condition, index) =>
        'modRevision' in condition
          ? (current[index]?.modRevision ?? 0) === condition.modRevision
          : (current[index]?.createRevision ?? 0) === condition.createRevision,
      );
      if (!holds) return { committed: false, revision: this.at, current } as const;
      const revision = this.at + 1;
      const changes = writes.flatMap((write): Change[] => {
        const previous = this.entries.get(write.key);
        if (write.kind === 'delete') {
          this.entries.delete(write.key);
          return previous === undefined ? [] : [{ kind: 'delete', key: write.key, previous }];
        }
        const { key, value } = write;
        const entry = {
          key,
          value,
          createRevision: previous?.createRevision ?? revision,
          modRevision: revision,
        };
        this.entries.set(key, entry);
        return [{ kind: 'put', entry, previous }];
      });
      if (changes.length > 0) this.publish({ revision, changes });
      return { committed: true, revision: this.at } as const;
    });
  }

  async *watch(prefix: string, { signal }: { signal: AbortSignal }): AsyncGenerator<ChangeBatch> {
    const watcher: Watcher = { prefix, queue: [], wake: () => undefined, failure: undefined };
    this.watchers.add(watcher);
    signal.addEventListener('abort', () => watcher.wake());
    try {
      while (!signal.aborted) {
        const batch = watcher.queue.shift();
        if (batch !== undefined) yield batch;
        else if (watcher.failure !== undefined) throw watcher.failure;
        else await new Promise<void>((resolve) => (watcher.wake = resolve));
      }
    } finally {
      this.watchers.delete(watcher);
    }
  }

  lease(): Promise<Lease> {
    const lost = new AbortController();
    const release = (): Promise<void> => {
      lost.abort();
      return Promise.resolve();
    };
    return this.answer('lease', () => ({ id: 'memory', lost: lost.signal, release }));
  }

  revision(): Promise<number> {
    return this.answer('revision', () => this.at);
  }

  close(): Promise<void> {
    this.breakWatches(new StoreError('closed', 'closed'));
    return Promise.resolve();
  }

  /** Watches end with this; what happened meanwhile is not told. */
  breakWatches(failure: StoreError): void {
    for (const watcher of this.watchers) {
      watcher.failure = failure;
      watcher.wake();
    }
  }

  /** Changes things behind the watches' back. */
  silently(change: (entries: Map<string, Entry>) => void, revision: number): void {
    change(this.entries);
    this.at = revision;
  }

  private publish(batch: ChangeBatch): void {
    this.at = batch.revision;
    for (const watcher of this.watchers) {
      const changes = batch.changes.filter((one) =>
        (one.kind === 'put' ? one.entry.key : one.key).startsWith(watcher.prefix),
      );
      if (changes.length > 0) watcher.queue.push({ revision: batch.revision, changes });
      watcher.wake();
    }
  }

  private async answer<T>(kind: 'get' | 'list' | 'commit' | 'revision' | 'lease', make: () => T): Promise<T> {
    await Promise.resolve();
    const failure = this.failNext.get(kind);
    this.failNext.delete(kind);
    // A commit whose outcome is unknown has happened here: the harder case.
    if (failure?.code === 'unknown-outcome') make();
    if (failure !== undefined) throw failure;
    return make();
  }
}
