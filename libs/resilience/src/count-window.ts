import type { OutcomeWindow } from './time-window.js';

/** The last `length` outcomes, however old. One byte each. */
export class CountWindow implements OutcomeWindow {
  private readonly marks: Uint8Array;
  private next = 0;
  callsHeld = 0;
  badHeld = 0;

  constructor(length: number) {
    this.marks = new Uint8Array(length);
  }

  record(bad: boolean, _nowMs: number): void {
    if (this.callsHeld === this.marks.length) this.badHeld -= this.marks[this.next] ?? 0;
    else this.callsHeld += 1;
    this.marks[this.next] = bad ? 1 : 0;
    if (bad) this.badHeld += 1;
    this.next = (this.next + 1) % this.marks.length;
  }

  calls(_nowMs: number): number {
    return this.callsHeld;
  }

  bad(_nowMs: number): number {
    return this.badHeld;
  }
}
