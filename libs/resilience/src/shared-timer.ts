import type { Cancel, Host } from './host.js';
import { TimerWheel, type WheelEntry } from './timer-wheel.js';

/** Lateness from here on is no matter of a busy event loop. */
const STALL_MS = 100;

/**
 * Many waits behind one timer of the host. The host's timer is set to the earliest wait; a wait that ends early
 * leaves it running, so that a stream of calls with the same timeout sets a timer about once a timeout, not once a call.
 */
export class SharedTimer {
  private readonly wheel = new TimerWheel();
  private armedForMs = Infinity;
  private disarm: Cancel | undefined;
  private tickAsked = false;
  /** While waits that ended are looked at: for how long the process had stood still when they were due; 0 = it had not. */
  stalledMs = 0;

  constructor(private readonly host: Host) {}

  get waiting(): number {
    return this.wheel.size;
  }

  start(entry: WheelEntry, dueMs: number): void {
    this.wheel.schedule(entry, dueMs);
    if (dueMs < this.armedForMs) this.arm(dueMs);
  }

  /**
   * Starts a new entry's wait of this length at the host's next tick, so that a call that ends before it has cost neither a reading
   * of the clock nor a timer. It ends a tick later than it might, never early. Without a ticker it starts at once.
   */
  startAtTick(entry: WheelEntry, delayMs: number): void {
    if (!this.tickAsked && !this.askForTick()) this.start(entry, this.host.nowMs() + delayMs);
    else this.wheel.hold(entry, delayMs);
  }

  /** When a wait of `startAtTick` began; undefined = no tick has come since. */
  beganMs(entry: WheelEntry, delayMs: number): number | undefined {
    return this.wheel.holds(entry) ? undefined : entry.dueMs - delayMs;
  }

  cancel(entry: WheelEntry): void {
    this.wheel.cancel(entry);
  }

  /** Ends the host's timer. Waits that still run will not end; a later `start` arms it again. */
  close(): void {
    this.disarm?.();
    this.disarm = undefined;
    this.armedForMs = Infinity;
  }

  private askForTick(): boolean {
    const { ticker } = this.host;
    if (ticker === undefined) return false;
    this.tickAsked = true;
    ticker.atNextTick(this.tick);
    return true;
  }

  private readonly tick = (nowMs: number): void => {
    this.tickAsked = false;
    const earliest = this.wheel.release(nowMs);
    if (earliest < this.armedForMs) this.arm(earliest);
  };

  private arm(dueMs: number): void {
    this.disarm?.();
    this.armedForMs = dueMs;
    this.disarm = this.host.after(Math.max(0, dueMs - this.host.nowMs()), this.fire);
  }

  /**
   * A process that stood still (a pause, a long computation) finds its timers due before it has read what arrived
   * meanwhile. It reads first: the waits are looked at one turn later.
   */
  private readonly fire = (): void => {
    const nowMs = this.host.nowMs();
    const lateMs = nowMs - this.armedForMs;
    if (lateMs >= STALL_MS && this.stalledMs === 0) {
      this.stalledMs = lateMs;
      this.disarm = this.host.after(0, this.fire);
      return;
    }
    this.disarm = undefined;
    this.armedForMs = Infinity;
    try {
      this.wheel.advance(nowMs);
    } finally {
      this.stalledMs = 0;
      const next = this.wheel.nextDueMs();
      if (next < this.armedForMs) this.arm(next);
    }
  };
}
