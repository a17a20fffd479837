import type { Cancel, Host } from './host.js';
import { TimerWheel, type WheelEntry } from './timer-wheel.js';

/**
 * Many waits behind one timer of the host. The host's timer is set to the earliest wait; a wait that ends early
 * leaves it running, so that a stream of calls with the same timeout sets a timer about once a timeout, not once a call.
 */
export class SharedTimer {
  private readonly wheel = new TimerWheel();
  private armedForMs = Infinity;
  private disarm: Cancel | undefined;

  constructor(private readonly host: Host) {}

  get waiting(): number {
    return this.wheel.size;
  }

  start(entry: WheelEntry, dueMs: number): void {
    this.wheel.schedule(entry, dueMs);
    if (dueMs < this.armedForMs) this.arm(dueMs);
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

  private arm(dueMs: number): void {
    this.disarm?.();
    this.armedForMs = dueMs;
    this.disarm = this.host.after(Math.max(0, dueMs - this.host.nowMs()), this.fire);
  }

  private readonly fire = (): void => {
    this.disarm = undefined;
    this.armedForMs = Infinity;
    try {
      this.wheel.advance(this.host.nowMs());
    } finally {
      const next = this.wheel.nextDueMs();
      if (next < this.armedForMs) this.arm(next);
    }
  };
}
