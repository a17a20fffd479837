import { StoreError, type Lease, type Store } from '@bulwark/store';
import type { Logger } from '@bulwark/telemetry';

export interface Held {
  readonly key: string;
  /** The store revision at which the key came to be under our lease: the fencing token. */
  readonly createRevision: number;
  /** Aborts when nobody can be sure any more that it is ours. */
  readonly lost: AbortSignal;
}

export interface LeasedKeyOptions {
  readonly store: Store;
  readonly key: string;
  value(): string;
  /** True: only if nobody has it. False: it is ours by name; what a former process left there is replaced. */
  readonly exclusive: boolean;
  readonly ttlMs: number;
  readonly logger: Logger;
  onHeld?(held: Held): void;
}

const RETRY_MS = 250;

/**
 * Keeps a key of the store under a lease for as long as it runs: takes it when it is free, notices a loss, and takes it
 * again. `wake` tells it that the key may have become free.
 */
export class LeasedKey {
  private readonly stopping = new AbortController();
  private running: Promise<void> | undefined;
  private wakeUp: (() => void) | undefined;
  private lease: Lease | undefined;
  private renounced = new AbortController();

  constructor(private readonly options: LeasedKeyOptions) {}

  start(): void {
    this.running ??= this.run();
  }

  /** The key may be free now. */
  wake(): void {
    this.wakeUp?.();
  }

  /** Lets go of the key it has, and tries to get it anew after a moment. */
  renounce(): void {
    this.renounced.abort();
  }

  /** Gives the key back. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.wakeUp?.();
    await this.running;
  }

  private async run(): Promise<void> {
    const { logger, key } = this.options;
    while (!this.stopping.signal.aborted) {
      try {
        this.renounced = new AbortController();
        const held = await this.take();
        if (held !== undefined) {
          this.options.onHeld?.(held);
          await aborted(held.lost, this.stopping.signal, this.renounced.signal);
          if (!this.stopping.signal.aborted) logger.warn({ key }, 'the lease was lost; taking it again');
        }
      } catch (error) {
        if (error instanceof StoreError && error.code === 'closed') return;
        logger.warn({ key, err: error }, 'the lease cannot be had; trying again');
      }
      await this.giveBack();
      await this.pause();
    }
  }

  private async take(): Promise<Held | undefined> {
    const { store, key, exclusive, ttlMs } = this.options;
    const present = await store.get(key);
    if (present !== undefined && exclusive) return undefined;
    const lease = (this.lease = await store.lease(ttlMs));
    const conditions = exclusive ? [{ key, modRevision: 0 }] : [];
    const write = { kind: 'put', key, value: this.options.value(), lease } as const;
    const result = await store.commit({ conditions, writes: [write] });
    return result.committed ? { key, createRevision: result.revision, lost: lease.lost } : undefined;
  }

  private async giveBack(): Promise<void> {
    const lease = this.lease;
    this.lease = undefined;
    await lease?.release().catch((error: unknown) => {
      this.options.logger.debug(
        { key: this.options.key, err: error },
        'the lease could not be given back; it lapses',
      );
    });
  }

  private async pause(): Promise<void> {
    if (this.stopping.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, RETRY_MS);
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wakeUp = undefined;
  }
}

function aborted(...signals: AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const any = AbortSignal.any(signals);
    if (any.aborted) resolve();
    else any.addEventListener('abort', () => resolve(), { once: true });
  });
}
