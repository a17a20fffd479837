import type { BypassFile } from './bypass-file.js';
import { MAX_BYPASS_MS } from './bypass-text.js';
import type { Logger } from './logger.js';

/** A bypass that lasts now. */
export interface BypassState {
  /** When it ends by itself, by the present wall clock. */
  readonly untilUnixMs: number;
  /** In a person's words; empty = none was given. */
  readonly reason: string;
}

export interface BypassOptions {
  readonly nowMs: () => number;
  readonly unixMs: () => number;
  readonly logger: Logger;
  /** Absent = by `set` only. */
  readonly file: BypassFile | undefined;
}

interface Lasting {
  /** Monotonic: a jump of the wall clock neither ends it nor makes it longer. */
  readonly untilMs: number;
  readonly reason: string;
}

const LOOK_EVERY_MS = 1_000;
const REMIND_EVERY_MS = 60_000;

/**
 * Takes the guards out for a bounded time: by a file, or by a call of the program. An engine that can stop every
 * call needs a way out that works without anything but this process, and that nobody can overlook or forget.
 */
export class Bypass {
  readonly #options: BypassOptions;
  #byFile: Lasting | undefined;
  #byCall: Lasting | undefined;
  /** The end of what lasts; -Infinity = nothing does. */
  #untilMs = -Infinity;
  #remindAtMs = Infinity;
  #calls = 0;
  #looking: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: BypassOptions) {
    this.#options = options;
  }

  /** Looks at the file now, and from then on every second. Resolves when the first look is over. */
  async start(): Promise<void> {
    if (this.#options.file === undefined) return;
    this.#tickOften();
    await this.#look();
  }

  /** Asked for every call. True = it passes, and is counted. */
  passes(): boolean {
    if (!this.active) return false;
    this.#calls += 1;
    return true;
  }

  get active(): boolean {
    return this.#untilMs !== -Infinity && this.#options.nowMs() < this.#untilMs;
  }

  state(): BypassState | undefined {
    if (!this.active) return undefined;
    const leftMs = this.#untilMs - this.#options.nowMs();
    return { untilUnixMs: Math.round(this.#options.unixMs() + leftMs), reason: this.#reason() };
  }

  /** For the program itself: for `forMs` (at most 24 h) from now; 0 ends what a former call of this began. */
  set(forMs: number, reason: string): void {
    if (!(forMs >= 0 && forMs <= MAX_BYPASS_MS)) {
      throw new RangeError(`a bypass lasts 0 to ${MAX_BYPASS_MS} ms, not ${forMs}`);
    }
    this.#byCall = forMs > 0 ? { untilMs: this.#options.nowMs() + forMs, reason } : undefined;
    this.#changed();
    this.#tickOften();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tickOften(): void {
    this.#timer ??= setInterval(() => this.#tick(), LOOK_EVERY_MS).unref();
  }

  #tick(): void {
    void this.#look();
    const nowMs = this.#options.nowMs();
    if (this.#untilMs === -Infinity) return;
    if (nowMs >= this.#untilMs) this.#changed();
    else if (nowMs >= this.#remindAtMs) {
      this.#remindAtMs = nowMs + REMIND_EVERY_MS;
      this.#warn('bypass goes on: calls pass unguarded');
    }
  }

  /** One look at a time: a file system that hangs must not pile up looks. */
  #look(): Promise<void> {
    const { file } = this.#options;
    if (file === undefined) return Promise.resolve();
    this.#looking ??= this.#readFile(file).finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #readFile(file: BypassFile): Promise<void> {
    const news = await file.look();
    switch (news.kind) {
      case 'unchanged':
        return;
      case 'absent':
        this.#byFile = undefined;
        break;
      case 'unusable':
        this.#byFile = undefined;
        this.#options.logger.error(
          { file: file.path, problem: news.problem },
          'the bypass file is of no use, calls stay guarded',
        );
        break;
      case 'bypass':
        this.#byFile =
          news.leftMs > 0 ? { untilMs: this.#options.nowMs() + news.leftMs, reason: news.reason } : undefined;
        if (news.leftMs === 0) {
          this.#options.logger.warn(
            { file: file.path },
            'there is a bypass file whose time has ended, calls are guarded; remove it, or touch it to begin again',
          );
        }
    }
    this.#changed();
  }

  /** Says what begins, changes and ends. */
  #changed(): void {
    const nowMs = this.#options.nowMs();
    const before = this.#untilMs;
    const longest = this.#longest();
    const untilMs = longest?.untilMs ?? -Infinity;
    this.#untilMs = untilMs > nowMs ? untilMs : -Infinity;
    if (this.#untilMs === before) return;
    if (this.#untilMs === -Infinity) {
      this.#options.logger.warn({ calls: this.#calls }, 'bypass has ended: calls are guarded again');
      this.#calls = 0;
      return;
    }
    this.#remindAtMs = nowMs + REMIND_EVERY_MS;
    this.#warn(
      before === -Infinity ? 'BYPASS: calls pass unguarded from now on' : 'bypass has another end now',
    );
  }

  #warn(message: string): void {
    const { untilUnixMs = 0, reason = '' } = this.state() ?? {};
    this.#options.logger.warn(
      { until: new Date(untilUnixMs).toISOString(), reason, calls: this.#calls },
      message,
    );
  }

  #longest(): Lasting | undefined {
    const [file, call] = [this.#byFile, this.#byCall];
    if (file === undefined || call === undefined) return file ?? call;
    return file.untilMs >= call.untilMs ? file : call;
  }

  /** Whoever wrote it: it is shown on terminals, and has none of their commands in it. */
  #reason(): string {
    const reason = this.#longest()?.reason ?? '';
    return reason.replace(/\p{Cc}/gu, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, '0')}`);
  }
}
