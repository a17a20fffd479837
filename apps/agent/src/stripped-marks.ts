import type { Logger } from '@bulwark/telemetry';

export type Side = 'inbound' | 'outbound';

/** A log line for each side at most this often. */
const TELL_EVERY_MS = 600_000;

/**
 * Marks that were not believed, because their sender is no trusted peer. Counted, and told now and then: a network that was
 * forgotten in --trusted-peers looks like nothing else, but layers that do not know of each other.
 */
export class StrippedMarks {
  readonly #logger: Logger;
  readonly #nowMs: () => number;
  readonly #counts = { inbound: 0, outbound: 0 };
  readonly #toldAtMs = { inbound: -Infinity, outbound: -Infinity };

  constructor(logger: Logger, nowMs: () => number = () => performance.now()) {
    this.#logger = logger;
    this.#nowMs = nowMs;
  }

  /** inbound: marks of a caller; outbound: of an upstream's answer. */
  note(side: Side, remoteAddress: string | undefined): void {
    this.#counts[side] += 1;
    const nowMs = this.#nowMs();
    if (nowMs - this.#toldAtMs[side] < TELL_EVERY_MS) return;
    this.#toldAtMs[side] = nowMs;
    this.#logger.warn(
      { side, peer: remoteAddress ?? 'unknown', total: this.#counts[side] },
      'Bulwark headers of a peer that is not trusted are ignored; if it is one of yours, name its network in --trusted-peers',
    );
  }

  counts(): Readonly<Record<Side, number>> {
    return { ...this.#counts };
  }
}
