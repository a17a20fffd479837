import type { Store } from '@bulwark/store';

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly message: string;
}

const PROBE_MS = 2_000;
const STALE_MS = 10_000;

/** Whether this replica is fit to be sent work. */
export class Health {
  private leaving = false;
  private timer: NodeJS.Timeout | undefined;
  private probing: Promise<void> | undefined;
  private storeSeenMs = -Infinity;
  private storeProblem = 'it has not answered yet';

  constructor(
    private readonly store: Store,
    private readonly loaded: () => readonly { readonly name: string; readonly loaded: boolean }[],
  ) {}

  start(): void {
    this.probe();
    this.timer = setInterval(() => this.probe(), PROBE_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.probing;
  }

  /** From now on this replica says that it is not ready. */
  leave(): void {
    this.leaving = true;
  }

  get isLeaving(): boolean {
    return this.leaving;
  }

  checks(): readonly Check[] {
    const storeOk = performance.now() - this.storeSeenMs < STALE_MS && this.storeProblem === '';
    return [
      { name: 'running', ok: !this.leaving, message: this.leaving ? 'this replica is shutting down' : 'ok' },
      {
        name: 'store',
        ok: storeOk,
        message: storeOk ? 'ok' : `the store does not answer: ${this.storeProblem}`,
      },
      ...this.loaded().map(({ name, loaded }) => ({
        name,
        ok: loaded,
        message: loaded ? 'ok' : 'not loaded from the store yet',
      })),
    ];
  }

  private probe(): void {
    this.probing ??= this.store
      .revision()
      .then(() => {
        this.storeSeenMs = performance.now();
        this.storeProblem = '';
      })
      .catch((error: unknown) => {
        this.storeProblem = error instanceof Error ? error.name : 'unknown';
      })
      .finally(() => (this.probing = undefined));
  }
}
