import { describe, expect, it } from 'vitest';
import { hasMarks, inheritMarks, readMarks } from './travelling-marks.js';

const headers = { 'bulwark-deadline': '800', 'bulwark-attempt': '2', 'idempotency-key': 'k' };

describe('travelling marks', () => {
  it('are believed from the trusted only; an idempotency key is everybody’s', () => {
    expect(readMarks({ headers }, true)).toEqual({ deadlineMs: 800, callerAttempt: 2, idempotencyKey: 'k' });
    expect(readMarks({ headers }, false)).toEqual({ idempotencyKey: 'k' });
    expect(hasMarks({ headers })).toBe(true);
    expect(hasMarks({ headers: { 'bulwark-retry': 'exhausted' } })).toBe(true);
    expect(hasMarks({ headers: { 'idempotency-key': 'k' } })).toBe(false);
  });

  it('are handed down as the smaller deadline, less what has passed, and the higher attempt', () => {
    const own = { deadlineMs: 500, callerAttempt: 1, idempotencyKey: 'k' };
    expect(inheritMarks(own, 1_000, { endsAtMs: 1_900, attempt: 3 }, 1_100)).toEqual({
      deadlineMs: 400,
      callerAttempt: 3,
      idempotencyKey: 'k',
    });
    expect(inheritMarks(own, 1_000, { endsAtMs: 1_300, attempt: 1 }, 1_100)).toEqual({
      deadlineMs: 200,
      idempotencyKey: 'k',
    });
    expect(inheritMarks({}, 1_000, { endsAtMs: 1_050, attempt: 1 }, 1_100)).toEqual({ deadlineMs: 0 });
    expect(inheritMarks({}, 1_000, { endsAtMs: Infinity, attempt: 1 }, 1_100)).toEqual({});
    expect(inheritMarks({ callerAttempt: 2 }, 1_000, undefined, 1_100)).toEqual({ callerAttempt: 2 });
  });
});
