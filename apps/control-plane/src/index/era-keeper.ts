import { StoreError, type Store } from '@bulwark/store';
import type { Logger } from '@bulwark/telemetry';
import { readRecord } from '../objects/json-value.js';
import type { StoreMirror } from './store-mirror.js';

export const META_PREFIX = '/bulwark/meta/';
const KEY = `${META_PREFIX}era`;
const ATTEMPTS = 10;

/**
 * The era: the first part of every version. It is raised when the store's history was replaced by an older one, so that
 * agents follow the restored state though its revisions are smaller than what they have seen. Kept in the store.
 */
export class EraKeeper {
  private highest = 0;
  private readonly listeners: ((era: number) => void)[] = [];

  constructor(
    private readonly store: Store,
    private readonly mirror: StoreMirror,
    private readonly logger: Logger,
  ) {
    mirror.listen({ changed: () => this.take(eraIn(this.mirror.entries.get(KEY)?.value)) });
  }

  get loaded(): boolean {
    return this.highest > 0;
  }

  /** At least 1 once loaded; never goes down in one process. */
  get current(): number {
    return this.highest;
  }

  listen(listener: (era: number) => void): void {
    this.listeners.push(listener);
  }

  /** Makes the stored era at least `atLeast`. @returns the era that now holds */
  async raise(atLeast: number, reason: string): Promise<number> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const entry = await this.store.get(KEY);
      const stored = eraIn(entry?.value);
      if (stored >= atLeast) {
        this.take(stored);
        return this.highest;
      }
      const value = JSON.stringify({ era: atLeast, reason, since: new Date().toISOString() });
      if (await this.write(entry?.modRevision ?? 0, value)) {
        if (atLeast > 1) this.logger.warn({ era: atLeast, reason }, 'the era was raised');
        this.take(atLeast);
        return this.highest;
      }
    }
    throw new StoreError('unavailable', 'the era could not be raised: too many other writes');
  }

  private async write(modRevision: number, value: string): Promise<boolean> {
    try {
      const result = await this.store.commit({
        conditions: [{ key: KEY, modRevision }],
        writes: [{ kind: 'put', key: KEY, value }],
      });
      return result.committed;
    } catch (error) {
      if (error instanceof StoreError && error.code === 'unknown-outcome') return false;
      throw error;
    }
  }

  private take(era: number): void {
    if (era <= this.highest) return;
    this.highest = era;
    for (const listener of this.listeners) listener(era);
  }
}

function eraIn(value: string | undefined): number {
  const era = readRecord(value)?.['era'];
  return Number.isSafeInteger(era) ? Number(era) : 0;
}
