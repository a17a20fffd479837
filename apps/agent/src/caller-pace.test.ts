import { expect, it } from 'vitest';
import { CallerPace } from './caller-pace.js';

it('counts the time a caller holds a call up, by either body, and both at once only once', () => {
  let nowMs = 0;
  const pace = new CallerPace(() => nowMs);
  expect(pace.read()).toEqual({ heldMs: 0, holding: false });
  pace.hold('upload');
  nowMs = 10;
  pace.hold('download');
  nowMs = 30;
  pace.release('upload');
  expect(pace.read()).toEqual({ heldMs: 30, holding: true });
  pace.release('download');
  pace.release('download');
  nowMs = 100;
  expect(pace.read()).toEqual({ heldMs: 30, holding: false });
});
