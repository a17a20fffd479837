export interface LastGoodSettings {
  readonly maxAgeMs: number;
  /** 0..1: part of `maxAgeMs` before its end over which refreshes are spread. */
  readonly refreshJitter: number;
}

/** A remembered answer and its age when it was found, 0..maxAge. */
export interface LastGood<T> {
  readonly value: T;
  readonly ageMs: number;
}

interface Entry<T> {
  readonly value: T;
  /** When the call that brought it began: what decides which of two answers is newer. */
  readonly startedMs: number;
  /** Age counts from here. */
  readonly storedMs: number;
  readonly refreshMs: number;
  /** The call that refreshes it. */
  refresher: object | undefined;
}

/**
 * The newest success per key, by reference, for when there is no fresh one. Bounded in entries (the least recently used
 * leaves) and in age. The key must name everything the answer depends on, authorisation above all.
 */
export class LastGoodCache<T> {
  private readonly entries = new Map<string, Entry<T>>();

  constructor(
    private settings: LastGoodSettings,
    private readonly random: () => number,
    private readonly maxEntries = 1000,
  ) {}

  get size(): number {
    return this.entries.size;
  }

  /** An answer from a call that began at `startedMs`. One that began before the remembered one's call is dropped. */
  store(key: string, value: T, at: { readonly startedMs: number; readonly nowMs: number }): void {
    const held = this.entries.get(key);
    if (held !== undefined && held.startedMs > at.startedMs) return;
    this.put(key, value, { ...at, storedMs: at.nowMs });
  }

  /** Puts back an answer kept elsewhere. Of unknown, negative or too great an age: not kept. */
  restore(key: string, value: T, at: { readonly ageMs: number; readonly nowMs: number }): void {
    if (!(at.ageMs >= 0 && at.ageMs <= this.settings.maxAgeMs) || this.entries.has(key)) return;
    const storedMs = at.nowMs - at.ageMs;
    this.put(key, value, { startedMs: storedMs, storedMs });
  }

  /** Undefined when there is none of an age between 0 and maxAge, both included. */
  find(key: string, nowMs: number): LastGood<T> | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    const ageMs = nowMs - entry.storedMs;
    if (!(ageMs >= 0 && ageMs <= this.settings.maxAgeMs)) {
      if (ageMs > this.settings.maxAgeMs) this.entries.delete(key);
      return undefined;
    }
    this.entries.delete(key);
    this.entries.set(key, entry);
    return { value: entry.value, ageMs };
  }

  /** The dependency said that the answer is no more (403, 404, 410 …), in a call that began at `startedMs`. */
  drop(key: string, startedMs: number): void {
    const held = this.entries.get(key);
    if (held !== undefined && held.startedMs <= startedMs) this.entries.delete(key);
  }

  /**
   * Near the end of its age an entry is refreshed by one call at a time: `mine` must end with `endRefresh`;
   * `other` may take the remembered answer at once; `none` = no refresh is due.
   */
  beginRefresh(key: string, call: object, nowMs: number): 'none' | 'mine' | 'other' {
    const entry = this.entries.get(key);
    if (entry === undefined || nowMs < entry.refreshMs) return 'none';
    if (entry.refresher !== undefined) return 'other';
    entry.refresher = call;
    return 'mine';
  }

  /** The refreshing call is over, however it ended. */
  endRefresh(key: string, call: object): void {
    const entry = this.entries.get(key);
    if (entry?.refresher === call) entry.refresher = undefined;
  }

  /** When the entry is to be refreshed; undefined when there is none. */
  refreshAtMs(key: string): number | undefined {
    return this.entries.get(key)?.refreshMs;
  }

  /** Entries stay; their refresh times too. */
  update(settings: LastGoodSettings): void {
    this.settings = settings;
  }

  clear(): void {
    this.entries.clear();
  }

  private put(key: string, value: T, at: { readonly startedMs: number; readonly storedMs: number }): void {
    const { maxAgeMs, refreshJitter } = this.settings;
    this.entries.delete(key);
    this.entries.set(key, {
      value,
      startedMs: at.startedMs,
      storedMs: at.storedMs,
      refreshMs: at.storedMs + maxAgeMs * (1 - refreshJitter * this.random()),
      refresher: undefined,
    });
    const oldest = this.entries.keys().next();
    if (this.entries.size > this.maxEntries && oldest.done !== true) this.entries.delete(oldest.value);
  }
}
