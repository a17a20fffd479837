import type { RetryBudgetSettings } from './settings.js';
import { TimeWindow } from './time-window.js';

/**
 * Bounds the retries of one process: the larger of `ratio` × its own first attempts in the window and its part of the
 * service's floor. A retry is counted when it is reserved, before its back-off, so that a burst cannot pass.
 */
export class RetryBudget {
  private liveAgents = 1;
  private firsts: TimeWindow;
  private retries: TimeWindow;

  constructor(private settings: RetryBudgetSettings) {
    this.firsts = new TimeWindow(settings.windowMs);
    this.retries = new TimeWindow(settings.windowMs);
  }

  /** How many agents of the service share the floor, this one included; below 1 and unknown count as 1. */
  setShare(liveAgents: number): void {
    this.liveAgents = liveAgents >= 1 ? liveAgents : 1;
  }

  firstAttempt(nowMs: number): void {
    this.firsts.record(false, nowMs);
  }

  /** False = the budget is spent: no retry. */
  reserve(nowMs: number): boolean {
    if (this.used(nowMs) + 1 > this.allowed(nowMs) + 1e-9) return false;
    this.retries.record(false, nowMs);
    return true;
  }

  /** A reserved retry that was never made. */
  giveBack(nowMs: number): void {
    this.retries.takeBack(nowMs);
  }

  /** Retries the window may hold now. */
  allowed(nowMs: number): number {
    const { ratio, minPerSecond, windowMs } = this.settings;
    const floor = (minPerSecond * windowMs) / 1000 / this.liveAgents;
    return Math.max(ratio * this.firsts.calls(nowMs), floor);
  }

  /** Retries reserved in the window. */
  used(nowMs: number): number {
    return this.retries.calls(nowMs);
  }

  /** Counts survive unless the window's length changed. */
  update(settings: RetryBudgetSettings): void {
    if (settings.windowMs !== this.settings.windowMs) {
      this.firsts = new TimeWindow(settings.windowMs);
      this.retries = new TimeWindow(settings.windowMs);
    }
    this.settings = settings;
  }
}
