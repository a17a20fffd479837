import type { Cancel, Host } from '@bulwark/resilience';
import type { BreakerKey, KeyReport, Poll, Report } from '@bulwark/protocol';

export interface ReporterOptions {
  readonly incarnation: string;
  readonly host: Pick<Host, 'nowMs' | 'random' | 'after'>;
  /** Present counters of one key id; undefined = the key is no more. */
  readonly read: (id: string) => KeyReport | undefined;
  /** Ids of all keys, for a new connection: its replica knows nothing of this agent. */
  readonly ids: () => Iterable<string>;
  /** False = not taken; the keys stay marked. */
  readonly send: (report: Report) => boolean;
}

/** About once a second in calm times; agents of one start would otherwise report in step for ever. */
const CALM_MIN_MS = 900;
const CALM_SPREAD_MS = 200;
/** The ceiling of the load, in calm and in incident. */
const URGENT_GAP_MS = 20;
const KEYS_PER_REPORT = 1_000;
/** Reports of the last moments before a loss may never have arrived: the next report's span covers them too. */
const UNSURE_MS = 5_000;

/**
 * Decides when to report. Keeps marks only, never reports: counters are cumulative, so whatever was not sent is in
 * the next one.
 */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #changed = new Set<string>();
  readonly #beganMs: number;
  #sequence = 0;
  /** When the first count that was not reported yet was made; undefined = everything was. */
  #uncoveredFromMs: number | undefined;
  #lastSentAtMs = -Infinity;
  #dueAtMs = Infinity;
  #cancel: Cancel | undefined;
  #connected = false;

  constructor(options: ReporterOptions) {
    this.#options = options;
    this.#beganMs = options.host.nowMs();
  }

  /** Something was counted: within about a second, at once after a silence. */
  changed(id: string): void {
    this.#mark(id);
    if (!this.#connected || this.#dueAtMs !== Infinity) return;
    const calmMs = CALM_MIN_MS + this.#options.host.random() * CALM_SPREAD_MS;
    this.#schedule(this.#lastSentAtMs + calmMs);
  }

  /** A failure, a local trip, the end of a probe: at once, but never more often than every 20 ms. */
  urgent(id: string): void {
    this.#mark(id);
    if (this.#connected) this.#schedule(this.#lastSentAtMs + URGENT_GAP_MS);
  }

  /** Answers at once, with the keys asked for whether they changed or not. */
  poll(poll: Poll, idOf: (key: BreakerKey) => string): void {
    const keys = poll.keys
      .map((key) => this.#options.read(idOf(key)))
      .filter((report) => report !== undefined);
    this.#emit(keys, poll.pollId);
  }

  /** A replica is there: it is told everything. */
  connected(): void {
    this.#connected = true;
    this.#changed.clear();
    for (const id of this.#options.ids()) this.#mark(id);
    // Whoever decides now may know nothing of this agent. One report says by its sequence that it is a baseline; of
    // several parts only the first does, so that the others must say by their span that their counts may be old.
    if (this.#changed.size > KEYS_PER_REPORT) this.#uncoveredFromMs = this.#beganMs;
    if (this.#changed.size > 0) this.#schedule(this.#options.host.nowMs());
  }

  disconnected(): void {
    if (!this.#connected) return;
    this.#connected = false;
    this.#unschedule();
    const unsureFromMs = this.#options.host.nowMs() - UNSURE_MS;
    this.#uncoveredFromMs = Math.min(this.#uncoveredFromMs ?? Infinity, unsureFromMs);
  }

  /** The stream takes reports again. */
  writable(): void {
    if (this.#connected && this.#changed.size > 0) this.#schedule(this.#lastSentAtMs + URGENT_GAP_MS);
  }

  /** Sends what is marked now, for a clean end. */
  flush(): void {
    this.#unschedule();
    if (this.#changed.size === 0) return;
    const waiting = [...this.#changed];
    for (let from = 0; from < waiting.length; from += KEYS_PER_REPORT) {
      const batch = waiting.slice(from, from + KEYS_PER_REPORT);
      const keys = batch.map((id) => this.#options.read(id)).filter((report) => report !== undefined);
      // All parts of one moment cover the same span; a part that did not leave keeps its marks and the span's start.
      if (!this.#emit(keys, 0)) return;
      for (const id of batch) this.#changed.delete(id);
    }
    this.#uncoveredFromMs = undefined;
  }

  stop(): void {
    this.#connected = false;
    this.#unschedule();
  }

  #mark(id: string): void {
    // While disconnected nothing needs a mark: a new connection begins with everything.
    if (this.#connected) this.#changed.add(id);
    this.#uncoveredFromMs ??= this.#options.host.nowMs();
  }

  #emit(keys: KeyReport[], pollId: number): boolean {
    const nowMs = this.#options.host.nowMs();
    const sent = this.#options.send({
      incarnation: this.#options.incarnation,
      sequence: this.#sequence + 1,
      coversMs: Math.max(1, Math.ceil(nowMs - (this.#uncoveredFromMs ?? nowMs))),
      keys,
      pollId,
    });
    if (!sent) return false;
    this.#sequence += 1;
    this.#lastSentAtMs = nowMs;
    return true;
  }

  #schedule(atMs: number): void {
    const nowMs = this.#options.host.nowMs();
    const dueAtMs = Math.max(nowMs, atMs);
    if (dueAtMs >= this.#dueAtMs) return;
    this.#cancel?.();
    this.#dueAtMs = dueAtMs;
    this.#cancel = this.#options.host.after(dueAtMs - nowMs, () => {
      this.#dueAtMs = Infinity;
      this.flush();
    });
  }

  #unschedule(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#dueAtMs = Infinity;
  }
}
