import { describe, expect, it } from 'vitest';
import { listOptions } from './request-options.js';

describe('the time of a watch', () => {
  const timeoutMs = (timeoutSeconds?: string): number =>
    listOptions({ watch: '1', ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }) }, 'shop').watch
      ?.timeoutMs ?? 0;

  it('is what the client asks for, up to an hour', () => {
    expect([timeoutMs('5'), timeoutMs('999999')]).toEqual([5_000, 3_600_000]);
  });

  it.each([undefined, '0'])('is half an hour to an hour for %s', (asked) => {
    expect(timeoutMs(asked)).toBeGreaterThanOrEqual(1_800_000);
    expect(timeoutMs(asked)).toBeLessThanOrEqual(3_600_000);
  });

  it.each(['abc', '-1', '1.5', '1e3'])('cannot be %s', (asked) => {
    expect(() => timeoutMs(asked)).toThrow('whole number');
  });
});
