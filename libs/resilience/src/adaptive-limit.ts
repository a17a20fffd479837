import type { OutcomeKind } from './outcome.js';

/** How one attempt ended, as the limit sees it. */
export interface AttemptSample {
  /** Milliseconds from its start to its end, without what its caller held up. */
  readonly durationMs: number;
  /** `ignored` says nothing; a failure says that it was too much, and nothing about durations. */
  readonly kind: OutcomeKind;
}

/** A window is judged when it has lasted so long … */
const WINDOW_MS = 100;
/** … and so many attempts that began in it have ended. */
const WINDOW_ENDS = 10;
/** Durations kept of a window; the rest of a busy one adds nothing to its median. */
const KEPT = 64;
/** After so long without an end a window begins anew. */
const IDLE_MS = 10_000;
/** How long an unloaded duration is believed. */
const REMEASURE_MS = 30_000;
/** Durations up to so many times the unloaded one are not taken for queueing. */
const TOLERANCE = 1.25;
/** No window shrinks the limit by more. */
const STEEPEST = 0.5;
/** Part of a quiet window's median that is taken into the unloaded duration. */
const SMOOTHING = 1 / 8;
/** Where a limit begins that nothing is known of yet. */
const FIRST_LIMIT = 10;

/**
 * A concurrency limit that follows what the dependency can take, by the gradient of its durations:
 *
 *   gradient = unloaded duration × tolerance ÷ median of the window, within ½ and 1
 *   limit    = gradient × limit + √limit
 *
 * The method is that of Envoy's adaptive concurrency filter ("Gradient Controller"), which itself follows Netflix's
 * concurrency-limits: a limit multiplied by a gradient bounded to ½, and room of the square root of the limit for a queue.
 * https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/adaptive_concurrency_filter
 * https://github.com/Netflix/concurrency-limits (Gradient2Limit)
 *
 * As Envoy does, the unloaded duration is measured anew from time to time, or a queue that stands for long would pass for
 * the usual. For that Envoy lets 3 requests in; here the limit is lowered for one window to its half, less twice the room
 * for a queue when it is small: by then it is near enough to the capacity for that to empty the queue. A window that stays
 * within that of itself is quiet, and measures too.
 *
 * - Medians: one lucky or unlucky attempt changes nothing.
 * - Only attempts that began in the window are judged: a change is given one round of attempts to show.
 * - A failing share of a window shrinks the limit by half of that share.
 * - It grows only when it was reached, and stays as it is while use is quiet.
 *
 * It begins at 10, or at `max` when that is less. Amortised O(1), constant memory, no clock of its own. It is for calls that
 * are answered and over: a stream lasts as long as its caller likes, which says nothing about load.
 */
export class AdaptiveLimit {
  private estimate: number;
  private unloadedMs: number | undefined;
  private measuredMs = -Infinity;
  private measuring = false;

  private startMs = 0;
  private lastMs = -Infinity;
  private peak = 0;
  private failures = 0;
  private kept = 0;
  private readonly durations = new Float64Array(KEPT);

  /** `max` ≥ 1. */
  constructor(private max: number) {
    this.estimate = Math.min(max, FIRST_LIMIT);
  }

  /** A whole number from 1 to `max`. */
  get limit(): number {
    return this.measuring ? this.quietLimit() : Math.floor(this.estimate);
  }

  setMax(max: number): void {
    this.max = max;
    this.estimate = Math.min(this.estimate, max);
  }

  /** An attempt ended; `inUse` counts those in flight, this one included. */
  ended(sample: AttemptSample, inUse: number, nowMs: number): void {
    if (sample.kind === 'ignored') return;
    const beganMs = nowMs - sample.durationMs;
    if (nowMs - this.lastMs > IDLE_MS) this.open(beganMs);
    this.lastMs = nowMs;
    if (inUse > this.peak) this.peak = inUse;
    if (beganMs < this.startMs) return;
    if (sample.kind === 'failure') this.failures += 1;
    else if (this.kept < KEPT) {
      this.durations[this.kept] = sample.durationMs;
      this.kept += 1;
    }
    if (this.kept + this.failures < WINDOW_ENDS || nowMs - this.startMs < WINDOW_MS) return;
    this.judge(nowMs);
    this.open(nowMs);
  }

  private open(startMs: number): void {
    this.startMs = startMs;
    this.peak = 0;
    this.failures = 0;
    this.kept = 0;
  }

  /** With so many in flight nothing queues in the dependency. */
  private quietLimit(): number {
    const { estimate } = this;
    return Math.max(1, Math.floor(Math.min(estimate / 2, estimate - 2 * Math.sqrt(estimate))));
  }

  private judge(nowMs: number): void {
    const reached = this.peak >= Math.floor(this.estimate);
    const quiet = !reached && this.peak <= this.quietLimit();
    // A window that mostly failed measures nothing.
    if ((quiet || this.measuring) && this.kept >= WINDOW_ENDS / 2) {
      this.measured(this.median(), nowMs);
      return;
    }
    if (quiet) return;
    const due = nowMs - this.measuredMs >= REMEASURE_MS;
    if (this.unloadedMs !== undefined) this.adjust(this.unloadedMs);
    this.measuring = due;
  }

  private measured(durationMs: number, nowMs: number): void {
    if (this.unloadedMs !== undefined && !this.measuring && nowMs - this.measuredMs < REMEASURE_MS) {
      this.unloadedMs += (durationMs - this.unloadedMs) * SMOOTHING;
      return;
    }
    this.unloadedMs = durationMs;
    this.measuredMs = nowMs;
    this.measuring = false;
  }

  private adjust(unloadedMs: number): void {
    const { estimate, failures, kept } = this;
    const usual = unloadedMs * TOLERANCE;
    const median = kept === 0 ? usual : this.median();
    // Durations of 0 (a clock with coarse ticks) are as good as any can be.
    const gradient = median <= usual ? 1 : Math.max(STEEPEST, usual / median);
    const failing = failures / (failures + kept);
    const room = this.peak >= Math.floor(estimate) ? Math.sqrt(estimate) * (1 - failing) : 0;
    const next = estimate * gradient * (1 - failing / 2) + room;
    this.estimate = Math.max(1, Math.min(next, this.max));
  }

  private median(): number {
    const sorted = this.durations.subarray(0, this.kept).sort();
    return sorted[Math.floor(this.kept / 2)] ?? 0;
  }
}
