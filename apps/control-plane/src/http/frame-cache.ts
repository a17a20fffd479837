import type { ApiObject } from '../objects/api-object.js';

/** Ages in tables are of this moment: a frame is not used longer. */
const KEEP_MS = 1_000;
const MAX_FRAMES = 10_000;

/**
 * Events as bytes, made once for all watchers that want them in the same form. Objects are never changed in place, so
 * the object itself is the key.
 */
export class FrameCache {
  private frames = new Map<ApiObject, Map<string, Buffer>>();
  private count = 0;
  private untilMs = -Infinity;

  /** @param form type and representation of the event: everything but the object that its bytes depend on */
  frame(object: ApiObject, form: string, make: () => unknown): Buffer {
    const nowMs = performance.now();
    if (nowMs >= this.untilMs || this.count >= MAX_FRAMES) this.clear(nowMs);
    let forms = this.frames.get(object);
    if (forms === undefined) this.frames.set(object, (forms = new Map<string, Buffer>()));
    let bytes = forms.get(form);
    if (bytes === undefined) {
      forms.set(form, (bytes = frameBytes(make())));
      this.count += 1;
    }
    return bytes;
  }

  private clear(nowMs: number): void {
    this.frames = new Map();
    this.count = 0;
    this.untilMs = nowMs + KEEP_MS;
  }
}

export function frameBytes(frame: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(frame)}\n`);
}
